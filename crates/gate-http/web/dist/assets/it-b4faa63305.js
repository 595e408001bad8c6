var n=`Pagamento
{title} – {shop}
Prova: {title}
Modalità test
: nessun denaro reale
Servizio di
Licenze
Chi gestisce {shop}: {name}
Aiuto
Condizioni
Privacy
Negozio
Passo {step} di 4
Caricamento…
Ci vuole più del solito. Lascia aperta la pagina.
Compra
Vendi
Scambia
Valore
Paghi
Ricevi
Invii
Hai pagato
Hai inviato
In arrivo
Inviato a te
Da pagare
Cambio
Paga entro
Che cosa vuoi fare?
Compra cripto
Vendi cripto
Scambia cripto
Tipo di operazione
{side}: selezionato.
Paghi {amount}
Con {methods}
Ricevi {amount}
Circa {amount} oggi. Vedi ogni commissione prima di pagare.
Vedi ogni commissione prima di pagare.
Ti serve un indirizzo wallet
Da un’app wallet o dal tuo conto su un exchange
Invii cripto dal tuo wallet
Ti serve il tuo IBAN
Ti servono i tuoi dati bancari
Invii una cripto
Ne ricevi un’altra, per un valore di circa {amount}
Ti serve un indirizzo wallet per la nuova cripto
Il tuo acquisto
La tua vendita
Il tuo scambio
Compri
Vendi
Rete
Sulla rete
Paga con
Ricevi con
≈ {amount}
Commissioni {amount}
Di solito {time}
Di solito da {from} a {to}
L’indirizzo del tuo wallet
Incolla
Incolla l’indirizzo
Controlla che questo wallet accetti {asset} su {network}.
Valido su {network}. Termina con {end}.
Impostato da {shop}
Inserisci l’indirizzo del tuo wallet.
Un carattere di questo indirizzo sembra sbagliato. Copialo di nuovo dal tuo wallet.
È un indirizzo per {others}. Hai scelto {network}. Cambia la rete o usa un altro indirizzo.
Questo è l’indirizzo di {asset} stesso, non di un wallet. Ciò che vi si invia è perso.
Nessuno può usare cripto a questo indirizzo. Copia l’indirizzo del tuo wallet.
Questo non è un indirizzo su {network}. Copia l’indirizzo intero dal tuo wallet.
Questo indirizzo non può ricevere {asset} su {network}. Copia l’indirizzo del tuo wallet.
Questo è un nome, non un indirizzo. Copia dal tuo wallet l’indirizzo che inizia con 0x.
Questo è un nome, non un indirizzo. Copia l’indirizzo stesso dal tuo wallet.
L’indirizzo è stato impostato da {shop} e non si può cambiare. Ricarica la pagina.
Il tuo IBAN
Gli spazi vanno bene.
Inserisci l’IBAN del tuo conto.
Questo IBAN contiene un errore di battitura. Confrontalo con l’app della tua banca.
Intestatario del conto
Inserisci il nome come lo scrive la tua banca, da 2 a 70 caratteri.
{field} (facoltativo)
Sort code
Inserisci le 6 cifre del sort code.
Numero di conto
Inserisci le 8 cifre del numero di conto.
Inserisci le 4-17 cifre del numero di conto.
Routing number
Questo routing number contiene un errore di battitura.
Tipo di conto
Conto corrente
Conto di risparmio
Bonifico SEPA
Carta
Faster Payments
Bonifico ACH
Il tuo prezzo
Su {network}, a {rate}
Convertito in {asset}
Commissione di servizio
Commissione di rete, {network}
Prezzo bloccato. Lo aggiorniamo per te.
Prezzo bloccato. Se cambia, te lo chiediamo di nuovo.
Il prezzo si aggiorna da solo
Caricamento del prezzo…
Ricevi {get}. Paghi {give}, commissioni di {fees} incluse.
Invii {give}. Ricevi {get}, commissioni di {fees} già detratte.
Il prezzo è cambiato.
Ricevi {amount} in meno di prima.
Ricevi {amount} in più di prima.
Invii {amount} in più di prima.
Invii {amount} in meno di prima.
Paghi lo stesso importo.
Ricevi lo stesso importo.
Invii la stessa quantità.
Le commissioni erano {before}, ora sono {now}.
Il cambio era {before}. Gli importi sono gli stessi.
Prima: {amount}
Premi di nuovo il pulsante se sei d’accordo.
Il prezzo è scaduto. Questo è il nuovo; premi di nuovo il pulsante se sei d’accordo.
Questo pagamento sembra aperto in un’altra finestra. Premi di nuovo il pulsante per pagare qui.
Questo prezzo non è più aggiornato.
Mostra il prezzo attuale
Conferma la tua identità
Per questo importo dobbiamo sapere chi sei. Le domande le fa il nostro partner.
Inizia dal nostro partner
Torna su questa pagina quando hai finito. Prosegue da sola.
Apri di nuovo
Stiamo controllando i tuoi dati. Puoi lasciare aperta questa pagina.
Identità confermata.
Non è stato possibile confermare la tua identità, quindi questo pagamento non può proseguire. Torna da {shop} per pagare in un altro modo.
Invia
Controlla e paga
Controlla e vendi
Controlla e scambia
È il tuo indirizzo? Un trasferimento di cripto è definitivo.
È il tuo conto?
Al tuo wallet
Al tuo conto
Paga {amount}
Vendi {amount}
Scambia {amount}
Pagamento in corso…
Un momento…
Poi: i dati bancari per il tuo bonifico.
Poi: l’indirizzo a cui inviare.
Poi: i dati della carta presso il fornitore del pagamento.
Fai il bonifico
Copia questi valori nell’app della tua banca.
Non dimenticare il riferimento.
Ci serve per trovare il tuo pagamento.
Invia {amount}
Invia su
, in un solo trasferimento.
Scansiona con il tuo wallet o copia i due valori
Oppure scansiona questo codice con l’app della tua banca
Apri nell’app del wallet
Importo esatto, {asset}
Indirizzo su {network}
Codice QR di questi valori, riportati anche come testo
Paga presso la tua banca o l’emittente della carta
Paghi su una pagina del fornitore del pagamento.
Apri la pagina di pagamento
Conferma il trasferimento nel tuo wallet.
Conferma nel tuo wallet
In attesa del tuo bonifico
In attesa dei tuoi {asset}
In attesa del tuo pagamento
Questa pagina si aggiorna da sola.
Ho fatto il bonifico
Ho inviato gli {asset}
Questa è una prova: non inviare nulla a questo indirizzo
Questa è una prova: non pagare nulla. Nessun denaro viene spostato.
Simula l’invio
Simula il pagamento
Copia
Copiato
Copia {field}
Copiato: {field}.
Premi Ctrl+C (⌘C) per copiare. Il testo è selezionato.
Sono arrivati {received} su {required}.
Invia i restanti {rest} nello stesso modo.
Sono arrivati {received}; l’importo richiesto era {required}. Il fornitore del pagamento restituisce la differenza.
Il tempo per pagare è scaduto: non inviare più nulla. Se hai già pagato, attendi qui. Il pagamento verrà completato o il denaro ti verrà restituito.
Intestatario del conto
IBAN
BIC
Riferimento
Importo
Indirizzo
Memo (obbligatorio)
Ci stiamo lavorando
Appena arriva il tuo bonifico, inviamo {get} al tuo wallet.
Appena il tuo pagamento è confermato, inviamo {get} al tuo wallet.
Appena arrivano i tuoi {asset}, inviamo {get} al tuo conto.
Appena arrivano i tuoi {asset}, inviamo {get} al tuo wallet.
Ordine ricevuto
Arrivo: {what}
Bonifico
Versamento
Invio: {what}
Denaro
Puoi chiudere questa pagina. {shop} riceve comunque il risultato.
Mostra i dati bancari
Mostra i dati del pagamento
Annulla questo pagamento
{amount} inviati
{amount} in arrivo
In viaggio verso il tuo wallet su {network}.
Al tuo conto {account}.
Al tuo conto bancario.
Commissioni, incluse
Data
Esercente
Conserva il riferimento.
Salva ricevuta
Puoi chiudere questa pagina.
Puoi tornare al negozio.
Torna da {shop}
Torna al negozio
Chiudi
Il pagamento è stato rifiutato
L’emittente della carta lo ha rifiutato senza dare un motivo. Riprova o scegli un altro modo di pagare.
La banca lo ha rifiutato senza dare un motivo. Riprova o scegli un altro modo di pagare.
Il pagamento non è andato a buon fine
Non conosciamo il motivo. Riprova o scegli un altro modo di pagare.
È arrivato un importo diverso da quello richiesto. Il fornitore del pagamento lo restituisce.
Il denaro non è arrivato in tempo. Se lo hai inviato, il fornitore del pagamento lo restituisce.
Il denaro è stato rimandato indietro prima della fine del pagamento.
La banca, l’emittente della carta o la rete lo ha rifiutato. Il fornitore del pagamento restituisce quanto è arrivato.
Pagato con
Tentato con
Se dal tuo conto è uscito del denaro, non pagare di nuovo. Comunica questo riferimento a {shop}.
Se gli {asset} hanno lasciato il tuo wallet, non inviarli di nuovo. Comunica questo riferimento a {shop}.
Riprova
Scegli un altro modo di pagare
Scegli un’altra cripto
Annulla e torna da {shop}
Annulla
Annullare questo pagamento?
Non è stato pagato nulla.
Hai già inviato il denaro? Allora non annullare.
Se hai inviato il denaro, annullando non torna indietro.
Prosegui
Continua ad aspettare
Annulla il pagamento
Annullamento…
Il pagamento è stato annullato. Puoi pagare di nuovo o tornare al negozio.
Al momento non disponibile
Questo pagamento al momento non è possibile qui. Scegli un altro modo di pagare nel negozio.
Questo link di pagamento è incompleto. Aprilo di nuovo dal negozio.
Questo pagamento è scaduto
Non è stato pagato nulla. Ricomincia dal negozio.
Questo pagamento è stato annullato
Non è stato pagato nulla.
Questo pagamento è chiuso
Il negozio mostra lo stato del tuo ordine.
Se hai inviato denaro, conserva questo riferimento: {reference} e chiedi a {shop}.
Questa pagina non può più proseguire
Apri di nuovo il pagamento dal negozio. Nulla viene pagato due volte.
Sei offline
Riproviamo appena torna la connessione. Nulla viene pagato due volte.
Prova ora
Sei di nuovo online.
Stiamo controllando il tuo pagamento
Il servizio di pagamento non era raggiungibile mentre pagavi. Non pagare di nuovo. Questa pagina mostra il risultato da sola.
Continua
Indietro
Al momento non c’è un prezzo per {asset}. Riprova o scegli un’altra cripto.
{asset} al momento non è disponibile su questa rete. Scegline un’altra.
L’importo di questo ordine è fuori dai limiti di questa scelta. Scegline un’altra.
Possibile: da {min} a {max}.
Qui nessuna scelta accetta l’importo di questo ordine.
Ci sono state troppe richieste. Riproviamo tra {seconds} secondi.
È troppo tardi per annullare: il pagamento è in esecuzione.
Non siamo riusciti a raggiungere il servizio di pagamento. Nulla viene pagato due volte. Riprova.
Riferimento: {id}
Questo pagamento è già in corso.`.split(`
`);export{n as messages};
