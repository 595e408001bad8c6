var e=`Betalen
{title} – {shop}
Test: {title}
Testmodus
: er gaat geen echt geld om
Mogelijk gemaakt door
Licenties
{shop} is een dienst van {name}
Hulp
Voorwaarden
Privacy
Winkel
Stap {step} van 4
Laden…
Dit duurt langer dan normaal. Laat de pagina open.
Kopen
Verkopen
Wisselen
Waarde
U betaalt
U ontvangt
U verstuurt
U hebt betaald
U hebt verstuurd
Onderweg
Naar u verstuurd
Te betalen
Koers
Betalen vóór
Wat wilt u doen?
Crypto kopen
Crypto verkopen
Crypto wisselen
Soort transactie
{side} gekozen.
U betaalt {amount}
Met {methods}
U ontvangt {amount}
Vandaag ongeveer {amount}. U ziet alle kosten voordat u betaalt.
U ziet alle kosten voordat u betaalt.
U hebt een walletadres nodig
Van een wallet-app of van uw account bij een exchange
U verstuurt crypto uit uw wallet
U hebt uw IBAN nodig
U hebt uw bankgegevens nodig
U verstuurt de ene munt
U ontvangt een andere, ter waarde van ongeveer {amount}
U hebt een walletadres voor de nieuwe munt nodig
Uw aankoop
Uw verkoop
Uw wissel
U koopt
U verkoopt
Netwerk
Op netwerk
Betalen met
Ontvangen via
≈ {amount}
Kosten {amount}
Meestal {time}
Meestal {from} tot {to}
Uw walletadres
Plakken
Adres plakken
Controleer of deze wallet {asset} op {network} aanneemt.
Geldig op {network}. Eindigt op {end}.
Ingesteld door {shop}
Vul het adres van uw wallet in.
Eén teken van dit adres lijkt niet te kloppen. Kopieer het opnieuw uit uw wallet.
Dit is een adres voor {others}. U koos {network}. Wijzig het netwerk of gebruik een ander adres.
Dit is het adres van {asset} zelf, niet van een wallet. Wat u daarheen stuurt, bent u kwijt.
Niemand kan munten op dit adres gebruiken. Kopieer het adres van uw eigen wallet.
Dit is geen adres op {network}. Kopieer het hele adres uit uw wallet.
Dit adres kan geen {asset} op {network} ontvangen. Kopieer het adres van uw eigen wallet.
Dit is een naam, geen adres. Kopieer uit uw wallet het adres dat met 0x begint.
Dit is een naam, geen adres. Kopieer het adres zelf uit uw wallet.
Het adres is ingesteld door {shop} en kan niet worden gewijzigd. Laad de pagina opnieuw.
Uw IBAN
Spaties mogen.
Vul de IBAN van uw rekening in.
Deze IBAN bevat een typefout. Vergelijk hem met de app van uw bank.
Rekeninghouder
Vul de naam in zoals uw bank die schrijft, 2 tot 70 tekens.
{field} (optioneel)
Sort code
Vul de 6 cijfers van de sort code in.
Rekeningnummer
Vul de 8 cijfers van het rekeningnummer in.
Vul de 4 tot 17 cijfers van het rekeningnummer in.
Routingnummer
Dit routingnummer bevat een typefout.
Soort rekening
Betaalrekening
Spaarrekening
SEPA-overboeking
Kaart
Faster Payments
ACH-overboeking
Uw prijs
Op {network}, tegen {rate}
Gewisseld voor {asset}
Servicekosten
Netwerkkosten, {network}
Prijs vastgehouden. We vernieuwen hem voor u.
Prijs vastgehouden. Verandert hij, dan vragen we het opnieuw.
De prijs wordt vanzelf vernieuwd
Prijs laden…
U ontvangt {get}. U betaalt {give}, inclusief {fees} kosten.
U verstuurt {give}. U ontvangt {get}, na aftrek van {fees} kosten.
De prijs is veranderd.
U ontvangt {amount} minder dan eerst.
U ontvangt {amount} meer dan eerst.
U verstuurt {amount} meer dan eerst.
U verstuurt {amount} minder dan eerst.
U betaalt hetzelfde.
U ontvangt hetzelfde.
U verstuurt hetzelfde.
De kosten waren {before} en zijn nu {now}.
De koers was {before}. De bedragen zijn gelijk.
Eerst: {amount}
Druk nog eens op de knop als u akkoord bent.
De prijs is verlopen. Dit is de nieuwe; druk nog eens op de knop als u akkoord bent.
Deze betaling lijkt ook in een ander venster open te staan. Druk nog eens op de knop om hier te betalen.
Deze prijs is niet meer actueel.
Huidige prijs tonen
Bevestig uw identiteit
Voor dit bedrag moeten we weten wie u bent. Onze partner stelt de vragen.
Beginnen bij onze partner
Kom naar deze pagina terug als u klaar bent. Ze gaat vanzelf verder.
Opnieuw openen
Uw gegevens worden gecontroleerd. U kunt deze pagina open laten.
Identiteit bevestigd.
Uw identiteit kon niet worden bevestigd, dus deze betaling kan niet doorgaan. Ga terug naar {shop} om anders te betalen.
Verzenden
Controleren en betalen
Controleren en verkopen
Controleren en wisselen
Is dit uw adres? Een cryptotransactie is definitief.
Is dit uw rekening?
Naar uw wallet
Naar uw rekening
{amount} betalen
{amount} verkopen
{amount} wisselen
Bezig met betalen…
Een moment…
Hierna: de bankgegevens voor uw overboeking.
Hierna: het adres waarnaar u verstuurt.
Hierna: uw kaartgegevens bij de betaaldienst.
Maak het bedrag over
Kopieer deze waarden naar de app van uw bank.
Vergeet het kenmerk niet.
Daaraan herkennen we uw betaling.
Verstuur {amount}
Verstuur op
, in één transactie.
Scan met uw wallet of kopieer beide waarden
Of scan deze code met de app van uw bank
Openen in wallet-app
Precies bedrag, {asset}
Adres op {network}
QR-code van deze waarden, die ook als tekst te zien zijn
Betaal bij uw bank of kaartuitgever
U betaalt op een pagina van de betaaldienst.
Betaalpagina openen
Bevestig de overboeking in uw wallet.
Bevestig in uw wallet
Wachten op uw overboeking
Wachten op uw {asset}
Wachten op uw betaling
Deze pagina werkt zichzelf bij.
Ik heb het overgemaakt
Ik heb de {asset} verstuurd
Dit is een test: stuur niets naar dit adres
Dit is een test: betaal niets. Er wordt geen geld verplaatst.
Verzending simuleren
Betaling simuleren
Kopiëren
Gekopieerd
{field} kopiëren
Gekopieerd: {field}.
Druk op Ctrl+C (⌘C) om te kopiëren. De tekst is geselecteerd.
{received} van {required} is binnen.
Verstuur de resterende {rest} op dezelfde manier.
{received} is binnen; gevraagd was {required}. De betaaldienst geeft het verschil terug.
De tijd om te betalen is voorbij: verstuur nu niets meer. Hebt u al betaald, wacht dan hier. De betaling wordt nog uitgevoerd, of u krijgt het geld terug.
Rekeninghouder
IBAN
BIC
Kenmerk
Bedrag
Adres
Memo (verplicht)
We zijn ermee bezig
Zodra uw overboeking binnen is, sturen we {get} naar uw wallet.
Zodra uw betaling is bevestigd, sturen we {get} naar uw wallet.
Zodra uw {asset} binnen zijn, sturen we {get} naar uw rekening.
Zodra uw {asset} binnen zijn, sturen we {get} naar uw wallet.
Opdracht gegeven
{what} ontvangen
Overboeking
Betaling
{what} verstuurd
Geld
U kunt deze pagina sluiten. {shop} krijgt het resultaat in elk geval.
Bankgegevens tonen
Betaalgegevens tonen
Deze betaling annuleren
{amount} verstuurd
{amount} is naar u onderweg
Onderweg naar uw wallet op {network}.
Naar uw rekening {account}.
Naar uw bankrekening.
Kosten, inbegrepen
Datum
Handelaar
Bewaar het kenmerk.
Bewijs opslaan
U kunt deze pagina sluiten.
U kunt terug naar de winkel.
Terug naar {shop}
Terug naar de winkel
Sluiten
De betaling is geweigerd
De kaartuitgever heeft geweigerd zonder een reden te geven. Probeer het opnieuw of betaal op een andere manier.
De bank heeft geweigerd zonder een reden te geven. Probeer het opnieuw of betaal op een andere manier.
De betaling is niet gelukt
We kennen de reden niet. Probeer het opnieuw of betaal op een andere manier.
Er is een ander bedrag binnengekomen dan gevraagd. De betaaldienst geeft het terug.
Het geld is niet op tijd binnengekomen. Hebt u het verstuurd, dan geeft de betaaldienst het terug.
Het geld is teruggestuurd voordat de betaling klaar was.
De bank, de kaartuitgever of het netwerk heeft geweigerd. De betaaldienst geeft terug wat is binnengekomen.
Betaald met
Geprobeerd met
Is er geld van uw rekening af, betaal dan niet opnieuw. Geef {shop} dit kenmerk.
Zijn de {asset} uit uw wallet weg, verstuur ze dan niet opnieuw. Geef {shop} dit kenmerk.
Opnieuw proberen
Op een andere manier betalen
Andere munt kiezen
Annuleren en terug naar {shop}
Annuleren
Deze betaling annuleren?
Er is niets betaald.
Hebt u het geld al verzonden? Annuleer dan niet.
Als u het geld hebt verzonden, komt het door annuleren niet terug.
Doorgaan
Blijven wachten
Betaling annuleren
Annuleren…
De betaling is geannuleerd. U kunt opnieuw betalen of teruggaan naar de winkel.
Nu niet beschikbaar
Deze betaling is hier nu niet mogelijk. Kies in de winkel een andere manier om te betalen.
Deze betaallink is niet volledig. Open hem opnieuw vanuit de winkel.
Deze betaling is verlopen
Er is niets betaald. Begin opnieuw in de winkel.
Deze betaling is geannuleerd
Er is niets betaald.
Deze betaling is afgesloten
De winkel toont de status van uw bestelling.
Hebt u geld verstuurd, bewaar dan dit kenmerk: {reference} en vraag {shop} ernaar.
Deze pagina kan niet meer verder
Open de betaling opnieuw vanuit de winkel. Niets wordt dubbel betaald.
U bent offline
We proberen het opnieuw zodra uw verbinding terug is. Niets wordt dubbel betaald.
Nu proberen
U bent weer online.
We controleren uw betaling
De betaaldienst was niet bereikbaar terwijl u betaalde. Betaal niet opnieuw. Deze pagina toont het resultaat vanzelf.
Verder
Terug
Er is nu geen prijs voor {asset}. Probeer het opnieuw of kies een andere munt.
{asset} wordt nu niet op dit netwerk aangeboden. Kies een ander.
Het bedrag van deze bestelling valt buiten de grenzen van deze keuze. Kies een andere.
Mogelijk: {min} tot {max}.
Geen keuze past hier bij het bedrag van deze bestelling.
Er waren te veel verzoeken. We proberen het over {seconds} seconden opnieuw.
Annuleren kan niet meer: de betaling wordt uitgevoerd.
We konden de betaaldienst niet bereiken. Niets wordt dubbel betaald. Probeer het opnieuw.
Kenmerk: {id}
Deze betaling loopt al.`.split(`
`);export{e as messages};
