var e=`Bezahlen
{title} – {shop}
Test: {title}
Testmodus
: Es fließt kein echtes Geld
Bereitgestellt von
Lizenzen
{shop} wird von {name} betrieben
Hilfe
AGB
Datenschutz
Shop
Schritt {step} von 4
Wird geladen …
Das dauert länger als sonst. Bitte lassen Sie die Seite offen.
Kaufen
Verkaufen
Tauschen
Wert
Sie zahlen
Sie erhalten
Sie senden
Bezahlt
Gesendet
Unterwegs
An Sie gesendet
Zu zahlen
Kurs
Zahlbar bis
Was möchten Sie tun?
Krypto kaufen
Krypto verkaufen
Krypto tauschen
Art des Vorgangs
{side} ausgewählt.
Sie zahlen {amount}
Per {methods}
Sie erhalten {amount}
Heute etwa {amount}. Sie sehen jede Gebühr, bevor Sie zahlen.
Sie sehen jede Gebühr, bevor Sie zahlen.
Sie brauchen eine Wallet-Adresse
Aus einer Wallet-App oder von Ihrem Konto bei einer Börse
Sie senden Krypto aus Ihrer Wallet
Sie brauchen Ihre IBAN
Sie brauchen Ihre Bankverbindung
Sie senden einen Coin
Sie erhalten einen anderen im Wert von etwa {amount}
Sie brauchen eine Wallet-Adresse für den neuen Coin
Ihr Kauf
Ihr Verkauf
Ihr Tausch
Sie kaufen
Sie verkaufen
Netzwerk
Im Netzwerk
Zahlen mit
Auszahlung per
≈ {amount}
Gebühren {amount}
In der Regel {time}
In der Regel {from} bis {to}
Ihre Wallet-Adresse
Einfügen
Adresse einfügen
Prüfen Sie, ob diese Wallet {asset} auf {network} annimmt.
Gültig auf {network}. Endet auf {end}.
Von {shop} festgelegt
Geben Sie die Adresse Ihrer Wallet ein.
Ein Zeichen dieser Adresse scheint falsch zu sein. Kopieren Sie sie noch einmal aus Ihrer Wallet.
Das ist eine Adresse für {others}. Sie haben {network} gewählt. Ändern Sie das Netzwerk oder nehmen Sie eine andere Adresse.
Das ist die Adresse von {asset} selbst, nicht die einer Wallet. Dorthin gesendete Coins sind verloren.
Coins an dieser Adresse kann niemand verwenden. Kopieren Sie die Adresse Ihrer eigenen Wallet.
Das ist keine Adresse auf {network}. Kopieren Sie die ganze Adresse aus Ihrer Wallet.
Diese Adresse kann kein {asset} auf {network} empfangen. Kopieren Sie die Adresse Ihrer eigenen Wallet.
Das ist ein Name, keine Adresse. Kopieren Sie aus Ihrer Wallet die Adresse, die mit 0x beginnt.
Das ist ein Name, keine Adresse. Kopieren Sie die Adresse selbst aus Ihrer Wallet.
Die Adresse wurde von {shop} festgelegt und lässt sich nicht ändern. Bitte laden Sie die Seite neu.
Ihre IBAN
Leerzeichen sind erlaubt.
Geben Sie die IBAN Ihres Kontos ein.
Diese IBAN enthält einen Tippfehler. Vergleichen Sie sie mit Ihrer Banking-App.
Kontoinhaber
Geben Sie den Namen so ein, wie Ihre Bank ihn schreibt, mit 2 bis 70 Zeichen.
{field} (freiwillig)
Sort Code
Geben Sie die 6 Ziffern des Sort Codes ein.
Kontonummer
Geben Sie die 8 Ziffern der Kontonummer ein.
Geben Sie die 4 bis 17 Ziffern der Kontonummer ein.
Routing-Nummer
Diese Routing-Nummer enthält einen Tippfehler.
Kontoart
Girokonto
Sparkonto
SEPA-Überweisung
Karte
Faster Payments
ACH-Überweisung
Ihr Preis
Auf {network}, zu {rate}
Getauscht in {asset}
Servicegebühr
Netzwerkgebühr, {network}
Preis reserviert. Wir erneuern ihn für Sie.
Preis reserviert. Ändert er sich, fragen wir Sie noch einmal.
Der Preis wird automatisch erneuert
Preis wird geladen …
Sie erhalten {get}. Sie zahlen {give}, darin {fees} Gebühren.
Sie senden {give}. Sie erhalten {get}, Gebühren von {fees} sind schon abgezogen.
Der Preis hat sich geändert.
Sie erhalten {amount} weniger als zuvor.
Sie erhalten {amount} mehr als zuvor.
Sie senden {amount} mehr als zuvor.
Sie senden {amount} weniger als zuvor.
Sie zahlen gleich viel.
Sie erhalten gleich viel.
Sie senden gleich viel.
Die Gebühren betrugen {before} und betragen jetzt {now}.
Der Kurs war {before}. Die Beträge sind gleich.
Zuvor: {amount}
Drücken Sie die Taste noch einmal, wenn Sie einverstanden sind.
Der Preis ist abgelaufen. Dies ist der neue; drücken Sie die Taste noch einmal, wenn Sie einverstanden sind.
Diese Zahlung ist wohl auch in einem anderen Fenster offen. Drücken Sie die Taste noch einmal, um hier zu zahlen.
Dieser Preis ist nicht mehr aktuell.
Aktuellen Preis zeigen
Identität bestätigen
Bei diesem Betrag müssen wir wissen, wer Sie sind. Die Fragen stellt unser Partner.
Beim Partner beginnen
Kommen Sie danach auf diese Seite zurück. Sie geht von selbst weiter.
Noch einmal öffnen
Ihre Angaben werden geprüft. Sie können diese Seite offen lassen.
Identität bestätigt.
Ihre Identität konnte nicht bestätigt werden, daher geht es mit dieser Zahlung nicht weiter. Andere Zahlungswege finden Sie bei {shop}.
Senden
Prüfen und zahlen
Prüfen und verkaufen
Prüfen und tauschen
Ist das Ihre Adresse? Eine Krypto-Überweisung ist endgültig.
Ist das Ihr Konto?
An Ihre Wallet
Auf Ihr Konto
{amount} zahlen
{amount} verkaufen
{amount} tauschen
Zahlung läuft …
Einen Moment …
Als Nächstes: die Bankdaten für Ihre Überweisung.
Als Nächstes: die Adresse, an die Sie senden.
Als Nächstes: Ihre Kartendaten beim Zahlungsanbieter.
Jetzt überweisen
Kopieren Sie diese Werte in Ihre Banking-App.
Vergessen Sie den Verwendungszweck nicht.
Daran erkennen wir Ihre Zahlung.
{amount} senden
Senden Sie auf
, in einer Überweisung.
Mit der Wallet scannen oder beide Werte kopieren
Oder scannen Sie diesen Code mit Ihrer Banking-App
In Wallet-App öffnen
Genauer Betrag, {asset}
Adresse auf {network}
QR-Code dieser Werte, die auch als Text zu sehen sind
Bei Ihrer Bank oder Kartenfirma zahlen
Sie zahlen auf einer Seite des Zahlungsanbieters.
Zahlungsseite öffnen
Bestätigen Sie die Überweisung in Ihrer Wallet.
In der Wallet bestätigen
Wir warten auf Ihre Überweisung
Wir warten auf Ihre {asset}
Wir warten auf Ihre Zahlung
Diese Seite aktualisiert sich von selbst.
Ich habe überwiesen
Ich habe die {asset} gesendet
Dies ist ein Test: Senden Sie nichts an diese Adresse
Dies ist ein Test: Zahlen Sie nichts. Es fließt kein Geld.
Senden simulieren
Zahlung simulieren
Kopieren
Kopiert
{field} kopieren
Kopiert: {field}.
Kopieren Sie mit Strg+C (⌘C). Der Text ist markiert.
{received} von {required} sind eingegangen.
Senden Sie die restlichen {rest} auf demselben Weg.
{received} sind eingegangen, verlangt waren {required}. Der Zahlungsanbieter gibt die Differenz zurück.
Die Zeit zum Zahlen ist abgelaufen: Bitte senden Sie jetzt nichts mehr. Falls Sie schon gezahlt haben, warten Sie hier. Die Zahlung wird noch ausgeführt, oder Sie erhalten das Geld zurück.
Kontoinhaber
IBAN
BIC
Referenz
Betrag
Adresse
Memo (erforderlich)
Wir sind dabei
Sobald Ihre Überweisung eintrifft, senden wir {get} an Ihre Wallet.
Sobald Ihre Zahlung bestätigt ist, senden wir {get} an Ihre Wallet.
Sobald Ihre {asset} eintreffen, senden wir {get} auf Ihr Konto.
Sobald Ihre {asset} eintreffen, senden wir {get} an Ihre Wallet.
Auftrag erteilt
{what} eingegangen
Überweisung
Zahlung
{what} gesendet
Geld
Sie können diese Seite schließen. {shop} erfährt das Ergebnis auf jeden Fall.
Bankdaten zeigen
Zahlungsdaten zeigen
Diese Zahlung abbrechen
{amount} gesendet
{amount} sind unterwegs zu Ihnen
Unterwegs an Ihre Wallet auf {network}.
Auf Ihr Konto {account}.
Auf Ihr Bankkonto.
Gebühren, enthalten
Datum
Händler
Heben Sie die Referenz auf.
Beleg speichern
Sie können diese Seite schließen.
Sie können zum Shop zurückkehren.
Zurück zu {shop}
Zurück zum Shop
Schließen
Die Zahlung wurde abgelehnt
Die Kartenfirma hat ohne Angabe von Gründen abgelehnt. Versuchen Sie es noch einmal oder zahlen Sie anders.
Die Bank hat ohne Angabe von Gründen abgelehnt. Versuchen Sie es noch einmal oder zahlen Sie anders.
Die Zahlung ist nicht zustande gekommen
Den Grund kennen wir nicht. Versuchen Sie es noch einmal oder zahlen Sie anders.
Es ist ein anderer Betrag eingegangen als verlangt. Der Zahlungsanbieter gibt ihn zurück.
Das Geld ist nicht rechtzeitig eingegangen. Falls Sie es gesendet haben, gibt der Zahlungsanbieter es zurück.
Das Geld wurde zurückgesendet, bevor die Zahlung abgeschlossen war.
Die Bank, die Kartenfirma oder das Netzwerk hat sie abgelehnt. Der Zahlungsanbieter gibt zurück, was eingegangen ist.
Bezahlt mit
Versucht mit
Falls Geld von Ihrem Konto abgegangen ist, zahlen Sie nicht noch einmal. Nennen Sie {shop} diese Referenz.
Falls die {asset} Ihre Wallet verlassen haben, senden Sie nicht noch einmal. Nennen Sie {shop} diese Referenz.
Noch einmal versuchen
Andere Zahlungsart wählen
Anderen Coin wählen
Abbrechen und zurück zu {shop}
Abbrechen
Diese Zahlung abbrechen?
Es wurde nichts bezahlt.
Haben Sie das Geld schon gesendet? Dann brechen Sie nicht ab.
Wenn Sie das Geld gesendet haben, bringt der Abbruch es nicht zurück.
Weitermachen
Weiter warten
Zahlung abbrechen
Wird abgebrochen …
Die Zahlung wurde abgebrochen. Sie können noch einmal zahlen oder zum Shop zurückkehren.
Zurzeit nicht verfügbar
Diese Zahlung ist hier zurzeit nicht möglich. Bitte wählen Sie im Shop eine andere Zahlungsart.
Dieser Zahlungslink ist unvollständig. Öffnen Sie ihn noch einmal aus dem Shop.
Diese Zahlung ist abgelaufen
Es wurde nichts bezahlt. Beginnen Sie im Shop neu.
Diese Zahlung wurde abgebrochen
Es wurde nichts bezahlt.
Diese Zahlung ist abgeschlossen
Den Stand Ihrer Bestellung sehen Sie im Shop.
Falls Sie Geld gesendet haben, bewahren Sie diese Referenz auf: {reference}. Fragen Sie damit bei {shop} nach.
Auf dieser Seite geht es nicht weiter
Öffnen Sie die Zahlung noch einmal aus dem Shop. Nichts wird doppelt bezahlt.
Sie sind offline
Wir versuchen es wieder, sobald die Verbindung steht. Nichts wird doppelt bezahlt.
Jetzt versuchen
Sie sind wieder online.
Wir prüfen Ihre Zahlung
Der Zahlungsdienst war während der Zahlung nicht erreichbar. Bitte zahlen Sie nicht noch einmal. Das Ergebnis erscheint hier von selbst.
Weiter
Zurück
Für {asset} gibt es zurzeit keinen Preis. Versuchen Sie es noch einmal oder wählen Sie einen anderen Coin.
{asset} wird auf diesem Netzwerk zurzeit nicht angeboten. Wählen Sie ein anderes.
Der Betrag dieser Bestellung liegt außerhalb der Grenzen dieser Auswahl. Wählen Sie etwas anderes.
Möglich: {min} bis {max}.
Für den Betrag dieser Bestellung gibt es hier keine Auswahl.
Es waren zu viele Anfragen. Wir versuchen es in {seconds} Sekunden wieder.
Zum Abbrechen ist es zu spät: Die Zahlung wird ausgeführt.
Wir konnten den Zahlungsdienst nicht erreichen. Nichts wird doppelt bezahlt. Versuchen Sie es noch einmal.
Referenz: {id}
Diese Zahlung läuft bereits.`.split(`
`);export{e as messages};
