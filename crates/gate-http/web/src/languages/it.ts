import type * as en from './en';

/** Texts of the SDK around the widget's frame. */
export const frame: typeof en.frame = {
  title: 'Pagamento sicuro',
  loading: 'Caricamento…',
};

/** Texts of the widget's page without its scripts. */
export const page: typeof en.page = {
  noscript: 'Questa pagina richiede JavaScript. Torna al negozio.',
};

/** Texts of the widget. Each may name the `{shop}`. */
export const messages: typeof en.messages = {
  // Page: its title, and what is above and below each screen
  title: 'Pagamento',
  docTitle: '{title} – {shop}',
  docTest: 'Prova: {title}',
  testMode: 'Modalità test',
  testNote: ': nessun denaro reale',
  powered: 'Servizio di',
  licences: 'Licenze',
  runBy: 'Chi gestisce {shop}: {name}',
  help: 'Aiuto',
  terms: 'Condizioni',
  privacy: 'Privacy',
  shopName: 'Negozio',

  // Progress bar, and waiting for the gate
  stepOf: 'Passo {step} di 4',
  loading: 'Caricamento…',
  longer: 'Ci vuole più del solito. Lascia aperta la pagina.',

  // Kinds of payment, and the names of amounts
  on_ramp: 'Compra',
  off_ramp: 'Vendi',
  swap: 'Scambia',
  worth: 'Valore',
  youPay: 'Paghi',
  youReceive: 'Ricevi',
  youSend: 'Invii',
  youPaid: 'Hai pagato',
  youSent: 'Hai inviato',
  onItsWay: 'In arrivo',
  sentToYou: 'Inviato a te',
  toPay: 'Da pagare',
  rate: 'Cambio',
  payBefore: 'Paga entro',

  // Screen choose: kinds of payment
  chooseTitle: 'Che cosa vuoi fare?',
  choose_on_ramp: 'Compra cripto',
  choose_off_ramp: 'Vendi cripto',
  choose_swap: 'Scambia cripto',
  kinds: 'Tipo di operazione',
  selected: '{side}: selezionato.',

  // Screen choose: what happens, and what the customer needs
  payAmount: 'Paghi {amount}',
  byMethods: 'Con {methods}',
  receiveThis: 'Ricevi {amount}',
  aboutToday: 'Circa {amount} oggi. Vedi ogni commissione prima di pagare.',
  everyFee: 'Vedi ogni commissione prima di pagare.',
  needWallet: 'Ti serve un indirizzo wallet',
  anyWallet: 'Da un’app wallet o dal tuo conto su un exchange',
  sendFromWallet: 'Invii cripto dal tuo wallet',
  needIban: 'Ti serve il tuo IBAN',
  needAccount: 'Ti servono i tuoi dati bancari',
  sendOne: 'Invii una cripto',
  receiveAnother: 'Ne ricevi un’altra, per un valore di circa {amount}',
  needWalletNew: 'Ti serve un indirizzo wallet per la nuova cripto',

  // Screen details: coin, network and method
  details_on_ramp: 'Il tuo acquisto',
  details_off_ramp: 'La tua vendita',
  details_swap: 'Il tuo scambio',
  asset_on_ramp: 'Compri',
  asset_off_ramp: 'Vendi',
  network: 'Rete',
  onNetwork: 'Sulla rete',
  method: 'Paga con',
  payoutMethod: 'Ricevi con',
  approx: '≈ {amount}',
  feesAre: 'Commissioni {amount}',
  usually: 'Di solito {time}',
  usuallyFrom: 'Di solito da {from} a {to}',

  // Screen details: address of the wallet
  wallet: 'L’indirizzo del tuo wallet',
  paste: 'Incolla',
  pasteAddress: 'Incolla l’indirizzo',
  walletHint: 'Controlla che questo wallet accetti {asset} su {network}.',
  walletOk: 'Valido su {network}. Termina con {end}.',
  walletFixed: 'Impostato da {shop}',
  walletEmpty: 'Inserisci l’indirizzo del tuo wallet.',
  walletSum: 'Un carattere di questo indirizzo sembra sbagliato. Copialo di nuovo dal tuo wallet.',
  walletOther: 'È un indirizzo per {others}. Hai scelto {network}. Cambia la rete o usa un altro indirizzo.',
  walletContract: 'Questo è l’indirizzo di {asset} stesso, non di un wallet. Ciò che vi si invia è perso.',
  walletDead: 'Nessuno può usare cripto a questo indirizzo. Copia l’indirizzo del tuo wallet.',
  walletElse: 'Questo non è un indirizzo su {network}. Copia l’indirizzo intero dal tuo wallet.',
  walletRefused: 'Questo indirizzo non può ricevere {asset} su {network}. Copia l’indirizzo del tuo wallet.',
  walletName: 'Questo è un nome, non un indirizzo. Copia dal tuo wallet l’indirizzo che inizia con 0x.',
  walletNameElse: 'Questo è un nome, non un indirizzo. Copia l’indirizzo stesso dal tuo wallet.',
  walletMismatch: 'L’indirizzo è stato impostato da {shop} e non si può cambiare. Ricarica la pagina.',

  // Screen details: bank account
  iban: 'Il tuo IBAN',
  ibanHint: 'Gli spazi vanno bene.',
  ibanEmpty: 'Inserisci l’IBAN del tuo conto.',
  ibanWrong: 'Questo IBAN contiene un errore di battitura. Confrontalo con l’app della tua banca.',
  account_holder: 'Intestatario del conto',
  holderWrong: 'Inserisci il nome come lo scrive la tua banca, da 2 a 70 caratteri.',
  optional: '{field} (facoltativo)',
  sort_code: 'Sort code',
  sortWrong: 'Inserisci le 6 cifre del sort code.',
  account_number: 'Numero di conto',
  numberWrong: 'Inserisci le 8 cifre del numero di conto.',
  numberWrongUs: 'Inserisci le 4-17 cifre del numero di conto.',
  routing_number: 'Routing number',
  routingWrong: 'Questo routing number contiene un errore di battitura.',
  account_type: 'Tipo di conto',
  checking: 'Conto corrente',
  savings: 'Conto di risparmio',

  // Methods of payment, by their id in the catalogue
  m_sepa: 'Bonifico SEPA',
  m_card: 'Carta',
  m_faster_payments: 'Faster Payments',
  m_ach: 'Bonifico ACH',

  // Screen price
  priceTitle: 'Il tuo prezzo',
  onAt: 'Su {network}, a {rate}',
  exchanged: 'Convertito in {asset}',
  serviceFee: 'Commissione di servizio',
  networkFee: 'Commissione di rete, {network}',
  held: 'Prezzo bloccato. Lo aggiorniamo per te.',
  heldAsk: 'Prezzo bloccato. Se cambia, te lo chiediamo di nuovo.',
  refreshed: 'Il prezzo si aggiorna da solo',
  priceLoading: 'Caricamento del prezzo…',
  says_on_ramp: 'Ricevi {get}. Paghi {give}, commissioni di {fees} incluse.',
  says_off_ramp: 'Invii {give}. Ricevi {get}, commissioni di {fees} già detratte.',

  // Prices that changed or ran out
  changed: 'Il prezzo è cambiato.',
  less: 'Ricevi {amount} in meno di prima.',
  more: 'Ricevi {amount} in più di prima.',
  sendMore: 'Invii {amount} in più di prima.',
  sendLess: 'Invii {amount} in meno di prima.',
  same_on_ramp: 'Paghi lo stesso importo.',
  same_off_ramp: 'Ricevi lo stesso importo.',
  same_swap: 'Invii la stessa quantità.',
  feesChanged: 'Le commissioni erano {before}, ora sono {now}.',
  rateChanged: 'Il cambio era {before}. Gli importi sono gli stessi.',
  before: 'Prima: {amount}',
  pressAgain: 'Premi di nuovo il pulsante se sei d’accordo.',
  ranOut: 'Il prezzo è scaduto. Questo è il nuovo; premi di nuovo il pulsante se sei d’accordo.',
  otherWindow: 'Questo pagamento sembra aperto in un’altra finestra. Premi di nuovo il pulsante per pagare qui.',
  outdated: 'Questo prezzo non è più aggiornato.',
  showPrice: 'Mostra il prezzo attuale',

  // Screen verification
  verificationTitle: 'Conferma la tua identità',
  verificationText: 'Per questo importo dobbiamo sapere chi sei. Le domande le fa il nostro partner.',
  partner: 'Inizia dal nostro partner',
  comeBack: 'Torna su questa pagina quando hai finito. Prosegue da sola.',
  openAgain: 'Apri di nuovo',
  verificationPending: 'Stiamo controllando i tuoi dati. Puoi lasciare aperta questa pagina.',
  verified: 'Identità confermata.',
  verificationRejected:
    'Non è stato possibile confermare la tua identità, quindi questo pagamento non può proseguire. ' +
    'Torna da {shop} per pagare in un altro modo.',
  send: 'Invia',

  // Screen confirm
  confirm_on_ramp: 'Controlla e paga',
  confirm_off_ramp: 'Controlla e vendi',
  confirm_swap: 'Controlla e scambia',
  checkAddress: 'È il tuo indirizzo? Un trasferimento di cripto è definitivo.',
  checkAccount: 'È il tuo conto?',
  toWallet: 'Al tuo wallet',
  toAccount: 'Al tuo conto',
  pay_on_ramp: 'Paga {amount}',
  pay_off_ramp: 'Vendi {amount}',
  pay_swap: 'Scambia {amount}',
  paying: 'Pagamento in corso…',
  moment: 'Un momento…',
  nextBank: 'Poi: i dati bancari per il tuo bonifico.',
  nextCrypto: 'Poi: l’indirizzo a cui inviare.',
  nextCard: 'Poi: i dati della carta presso il fornitore del pagamento.',

  // Screen instructions: bank transfer, and transfer of crypto
  bankTitle: 'Fai il bonifico',
  bankLead: 'Copia questi valori nell’app della tua banca.',
  mindReference: 'Non dimenticare il riferimento.',
  whyReference: 'Ci serve per trovare il tuo pagamento.',
  sendTitle: 'Invia {amount}',
  sendOn: 'Invia su',
  sendOnce: ', in un solo trasferimento.',
  scan: 'Scansiona con il tuo wallet o copia i due valori',
  scanBank: 'Oppure scansiona questo codice con l’app della tua banca',
  openWallet: 'Apri nell’app del wallet',
  exact: 'Importo esatto, {asset}',
  addressOn: 'Indirizzo su {network}',
  qr: 'Codice QR di questi valori, riportati anche come testo',

  // Screen instructions: other ways to pay
  redirectTitle: 'Paga presso la tua banca o l’emittente della carta',
  redirectText: 'Paghi su una pagina del fornitore del pagamento.',
  openLink: 'Apri la pagina di pagamento',
  deposit: 'Conferma il trasferimento nel tuo wallet.',
  walletTitle: 'Conferma nel tuo wallet',

  // Screen instructions: waiting and copying
  waitBank: 'In attesa del tuo bonifico',
  waitCrypto: 'In attesa dei tuoi {asset}',
  waitPayment: 'In attesa del tuo pagamento',
  updates: 'Questa pagina si aggiorna da sola.',
  sentBank: 'Ho fatto il bonifico',
  sentCrypto: 'Ho inviato gli {asset}',
  testAddress: 'Questa è una prova: non inviare nulla a questo indirizzo',
  testPayment: 'Questa è una prova: non pagare nulla. Nessun denaro viene spostato.',
  pretendSent: 'Simula l’invio',
  pretendPaid: 'Simula il pagamento',
  copy: 'Copia',
  copied: 'Copiato',
  copyOf: 'Copia {field}',
  copiedOf: 'Copiato: {field}.',
  byHand: 'Premi Ctrl+C (⌘C) per copiare. Il testo è selezionato.',

  // Amounts that differ, and the end of the time to pay
  partArrived: 'Sono arrivati {received} su {required}.',
  sendRest: 'Invia i restanti {rest} nello stesso modo.',
  moreArrived:
    'Sono arrivati {received}; l’importo richiesto era {required}. ' +
    'Il fornitore del pagamento restituisce la differenza.',
  timeOver:
    'Il tempo per pagare è scaduto: non inviare più nulla. Se hai già pagato, attendi qui. ' +
    'Il pagamento verrà completato o il denaro ti verrà restituito.',

  // Fields of a transfer, by their name in the API
  i_account_holder: 'Intestatario del conto',
  i_iban: 'IBAN',
  i_bic: 'BIC',
  i_reference: 'Riferimento',
  i_amount: 'Importo',
  i_address: 'Indirizzo',
  i_memo: 'Memo (obbligatorio)',

  // Screen progress
  progressTitle: 'Ci stiamo lavorando',
  progress_on_ramp: 'Appena arriva il tuo bonifico, inviamo {get} al tuo wallet.',
  progressCard: 'Appena il tuo pagamento è confermato, inviamo {get} al tuo wallet.',
  progress_off_ramp: 'Appena arrivano i tuoi {asset}, inviamo {get} al tuo conto.',
  progress_swap: 'Appena arrivano i tuoi {asset}, inviamo {get} al tuo wallet.',
  placed: 'Ordine ricevuto',
  arrived: 'Arrivo: {what}',
  transfer: 'Bonifico',
  payment: 'Versamento',
  coinSent: 'Invio: {what}',
  money: 'Denaro',
  closePage: 'Puoi chiudere questa pagina. {shop} riceve comunque il risultato.',
  showBank: 'Mostra i dati bancari',
  showDetails: 'Mostra i dati del pagamento',
  cancelPayment: 'Annulla questo pagamento',

  // Screen done
  doneSent: '{amount} inviati',
  doneMoney: '{amount} in arrivo',
  doneWallet: 'In viaggio verso il tuo wallet su {network}.',
  doneAccount: 'Al tuo conto {account}.',
  doneAnyAccount: 'Al tuo conto bancario.',
  feesIncluded: 'Commissioni, incluse',
  date: 'Data',
  merchant: 'Esercente',
  keepReference: 'Conserva il riferimento.',
  saveReceipt: 'Salva ricevuta',
  mayClose: 'Puoi chiudere questa pagina.',
  mayReturn: 'Puoi tornare al negozio.',
  return: 'Torna da {shop}',
  returnPlain: 'Torna al negozio',
  close: 'Chiudi',

  // Screen failed
  declinedTitle: 'Il pagamento è stato rifiutato',
  declinedCard:
    'L’emittente della carta lo ha rifiutato senza dare un motivo. Riprova o scegli un altro modo di pagare.',
  declinedBank: 'La banca lo ha rifiutato senza dare un motivo. Riprova o scegli un altro modo di pagare.',
  failedTitle: 'Il pagamento non è andato a buon fine',
  failedText: 'Non conosciamo il motivo. Riprova o scegli un altro modo di pagare.',
  amount_differs: 'È arrivato un importo diverso da quello richiesto. Il fornitore del pagamento lo restituisce.',
  expired: 'Il denaro non è arrivato in tempo. Se lo hai inviato, il fornitore del pagamento lo restituisce.',
  returned: 'Il denaro è stato rimandato indietro prima della fine del pagamento.',
  refused:
    'La banca, l’emittente della carta o la rete lo ha rifiutato. ' +
    'Il fornitore del pagamento restituisce quanto è arrivato.',
  paidWith: 'Pagato con',
  triedWith: 'Tentato con',
  failedHelp: 'Se dal tuo conto è uscito del denaro, non pagare di nuovo. Comunica questo riferimento a {shop}.',
  failedHelpCrypto:
    'Se gli {asset} hanno lasciato il tuo wallet, non inviarli di nuovo. Comunica questo riferimento a {shop}.',
  retry: 'Riprova',
  otherWay: 'Scegli un altro modo di pagare',
  otherCoin: 'Scegli un’altra cripto',

  // Cancelling a payment
  cancelAndBack: 'Annulla e torna da {shop}',
  cancel: 'Annulla',
  askCancel: 'Annullare questo pagamento?',
  nothingYet: 'Non è stato pagato nulla.',
  askSent: 'Hai già inviato il denaro? Allora non annullare.',
  riskSent: 'Se hai inviato il denaro, annullando non torna indietro.',
  keepGoing: 'Prosegui',
  keepWaiting: 'Continua ad aspettare',
  yesCancel: 'Annulla il pagamento',
  cancelling: 'Annullamento…',
  paymentCancelled: 'Il pagamento è stato annullato. Puoi pagare di nuovo o tornare al negozio.',

  // Screen unavailable
  unavailableTitle: 'Al momento non disponibile',
  unavailableText: 'Questo pagamento al momento non è possibile qui. Scegli un altro modo di pagare nel negozio.',
  brokenLink: 'Questo link di pagamento è incompleto. Aprilo di nuovo dal negozio.',

  // Screen over
  expiredTitle: 'Questo pagamento è scaduto',
  startAgain: 'Non è stato pagato nulla. Ricomincia dal negozio.',
  cancelledTitle: 'Questo pagamento è stato annullato',
  nothingPaid: 'Non è stato pagato nulla.',
  closedTitle: 'Questo pagamento è chiuso',
  closedText: 'Il negozio mostra lo stato del tuo ordine.',
  keepAndAsk: 'Se hai inviato denaro, conserva questo riferimento: {reference} e chiedi a {shop}.',
  tokenTitle: 'Questa pagina non può più proseguire',
  tokenText: 'Apri di nuovo il pagamento dal negozio. Nulla viene pagato due volte.',

  // Screen offline, and a payment whose result is unknown
  offlineTitle: 'Sei offline',
  offlineText: 'Riproviamo appena torna la connessione. Nulla viene pagato due volte.',
  tryNow: 'Prova ora',
  online: 'Sei di nuovo online.',
  checkingTitle: 'Stiamo controllando il tuo pagamento',
  checkingText:
    'Il servizio di pagamento non era raggiungibile mentre pagavi. Non pagare di nuovo. Questa pagina mostra il risultato da sola.',

  // Buttons and alerts of several screens
  continue: 'Continua',
  back: 'Indietro',
  noRate: 'Al momento non c’è un prezzo per {asset}. Riprova o scegli un’altra cripto.',
  notOffered: '{asset} al momento non è disponibile su questa rete. Scegline un’altra.',
  outOfRange: 'L’importo di questo ordine è fuori dai limiti di questa scelta. Scegline un’altra.',
  limits: 'Possibile: da {min} a {max}.',
  noChoice: 'Qui nessuna scelta accetta l’importo di questo ordine.',
  tooMany: 'Ci sono state troppe richieste. Riproviamo tra {seconds} secondi.',
  tooLate: 'È troppo tardi per annullare: il pagamento è in esecuzione.',
  unreachable: 'Non siamo riusciti a raggiungere il servizio di pagamento. Nulla viene pagato due volte. Riprova.',
  requestId: 'Riferimento: {id}',
  underWay: 'Questo pagamento è già in corso.',
};
