import type * as en from './en';

/** Texts of the SDK around the widget's frame. */
export const frame: typeof en.frame = {
  title: 'Veilig betalen',
  loading: 'Laden…',
};

/** Texts of the widget's page without its scripts. */
export const page: typeof en.page = {
  noscript: 'Deze pagina heeft JavaScript nodig. Ga terug naar de winkel.',
};

/** Texts of the widget. Each may name the `{shop}`. */
export const messages: typeof en.messages = {
  // Page: its title, and what is above and below each screen
  title: 'Betalen',
  docTitle: '{title} – {shop}',
  docTest: 'Test: {title}',
  testMode: 'Testmodus',
  testNote: ': er gaat geen echt geld om',
  powered: 'Mogelijk gemaakt door',
  licences: 'Licenties',
  runBy: '{shop} is een dienst van {name}',
  help: 'Hulp',
  terms: 'Voorwaarden',
  privacy: 'Privacy',
  shopName: 'Winkel',

  // Progress bar, and waiting for the gate
  stepOf: 'Stap {step} van 4',
  loading: 'Laden…',
  longer: 'Dit duurt langer dan normaal. Laat de pagina open.',

  // Kinds of payment, and the names of amounts
  on_ramp: 'Kopen',
  off_ramp: 'Verkopen',
  swap: 'Wisselen',
  worth: 'Waarde',
  youPay: 'U betaalt',
  youReceive: 'U ontvangt',
  youSend: 'U verstuurt',
  youPaid: 'U hebt betaald',
  youSent: 'U hebt verstuurd',
  onItsWay: 'Onderweg',
  sentToYou: 'Naar u verstuurd',
  toPay: 'Te betalen',
  rate: 'Koers',
  payBefore: 'Betalen vóór',

  // Screen choose: kinds of payment
  chooseTitle: 'Wat wilt u doen?',
  choose_on_ramp: 'Crypto kopen',
  choose_off_ramp: 'Crypto verkopen',
  choose_swap: 'Crypto wisselen',
  kinds: 'Soort transactie',
  selected: '{side} gekozen.',

  // Screen choose: what happens, and what the customer needs
  payAmount: 'U betaalt {amount}',
  byMethods: 'Met {methods}',
  receiveThis: 'U ontvangt {amount}',
  aboutToday: 'Vandaag ongeveer {amount}. U ziet alle kosten voordat u betaalt.',
  everyFee: 'U ziet alle kosten voordat u betaalt.',
  needWallet: 'U hebt een walletadres nodig',
  anyWallet: 'Van een wallet-app of van uw account bij een exchange',
  sendFromWallet: 'U verstuurt crypto uit uw wallet',
  needIban: 'U hebt uw IBAN nodig',
  needAccount: 'U hebt uw bankgegevens nodig',
  sendOne: 'U verstuurt de ene munt',
  receiveAnother: 'U ontvangt een andere, ter waarde van ongeveer {amount}',
  needWalletNew: 'U hebt een walletadres voor de nieuwe munt nodig',

  // Screen details: coin, network and method
  details_on_ramp: 'Uw aankoop',
  details_off_ramp: 'Uw verkoop',
  details_swap: 'Uw wissel',
  asset_on_ramp: 'U koopt',
  asset_off_ramp: 'U verkoopt',
  network: 'Netwerk',
  onNetwork: 'Op netwerk',
  method: 'Betalen met',
  payoutMethod: 'Ontvangen via',
  approx: '≈ {amount}',
  feesAre: 'Kosten {amount}',
  usually: 'Meestal {time}',
  usuallyFrom: 'Meestal {from} tot {to}',

  // Screen details: address of the wallet
  wallet: 'Uw walletadres',
  paste: 'Plakken',
  pasteAddress: 'Adres plakken',
  walletHint: 'Controleer of deze wallet {asset} op {network} aanneemt.',
  walletOk: 'Geldig op {network}. Eindigt op {end}.',
  walletFixed: 'Ingesteld door {shop}',
  walletEmpty: 'Vul het adres van uw wallet in.',
  walletSum: 'Eén teken van dit adres lijkt niet te kloppen. Kopieer het opnieuw uit uw wallet.',
  walletOther: 'Dit is een adres voor {others}. U koos {network}. Wijzig het netwerk of gebruik een ander adres.',
  walletContract: 'Dit is het adres van {asset} zelf, niet van een wallet. Wat u daarheen stuurt, bent u kwijt.',
  walletDead: 'Niemand kan munten op dit adres gebruiken. Kopieer het adres van uw eigen wallet.',
  walletElse: 'Dit is geen adres op {network}. Kopieer het hele adres uit uw wallet.',
  walletRefused: 'Dit adres kan geen {asset} op {network} ontvangen. Kopieer het adres van uw eigen wallet.',
  walletName: 'Dit is een naam, geen adres. Kopieer uit uw wallet het adres dat met 0x begint.',
  walletNameElse: 'Dit is een naam, geen adres. Kopieer het adres zelf uit uw wallet.',
  walletMismatch: 'Het adres is ingesteld door {shop} en kan niet worden gewijzigd. Laad de pagina opnieuw.',

  // Screen details: bank account
  iban: 'Uw IBAN',
  ibanHint: 'Spaties mogen.',
  ibanEmpty: 'Vul de IBAN van uw rekening in.',
  ibanWrong: 'Deze IBAN bevat een typefout. Vergelijk hem met de app van uw bank.',
  account_holder: 'Rekeninghouder',
  holderWrong: 'Vul de naam in zoals uw bank die schrijft, 2 tot 70 tekens.',
  optional: '{field} (optioneel)',
  sort_code: 'Sort code',
  sortWrong: 'Vul de 6 cijfers van de sort code in.',
  account_number: 'Rekeningnummer',
  numberWrong: 'Vul de 8 cijfers van het rekeningnummer in.',
  numberWrongUs: 'Vul de 4 tot 17 cijfers van het rekeningnummer in.',
  routing_number: 'Routingnummer',
  routingWrong: 'Dit routingnummer bevat een typefout.',
  account_type: 'Soort rekening',
  checking: 'Betaalrekening',
  savings: 'Spaarrekening',

  // Methods of payment, by their id in the catalogue
  m_sepa: 'SEPA-overboeking',
  m_card: 'Kaart',
  m_faster_payments: 'Faster Payments',
  m_ach: 'ACH-overboeking',

  // Screen price
  priceTitle: 'Uw prijs',
  onAt: 'Op {network}, tegen {rate}',
  exchanged: 'Gewisseld voor {asset}',
  serviceFee: 'Servicekosten',
  networkFee: 'Netwerkkosten, {network}',
  held: 'Prijs vastgehouden. We vernieuwen hem voor u.',
  heldAsk: 'Prijs vastgehouden. Verandert hij, dan vragen we het opnieuw.',
  refreshed: 'De prijs wordt vanzelf vernieuwd',
  priceLoading: 'Prijs laden…',
  says_on_ramp: 'U ontvangt {get}. U betaalt {give}, inclusief {fees} kosten.',
  says_off_ramp: 'U verstuurt {give}. U ontvangt {get}, na aftrek van {fees} kosten.',

  // Prices that changed or ran out
  changed: 'De prijs is veranderd.',
  less: 'U ontvangt {amount} minder dan eerst.',
  more: 'U ontvangt {amount} meer dan eerst.',
  sendMore: 'U verstuurt {amount} meer dan eerst.',
  sendLess: 'U verstuurt {amount} minder dan eerst.',
  same_on_ramp: 'U betaalt hetzelfde.',
  same_off_ramp: 'U ontvangt hetzelfde.',
  same_swap: 'U verstuurt hetzelfde.',
  feesChanged: 'De kosten waren {before} en zijn nu {now}.',
  rateChanged: 'De koers was {before}. De bedragen zijn gelijk.',
  before: 'Eerst: {amount}',
  pressAgain: 'Druk nog eens op de knop als u akkoord bent.',
  ranOut: 'De prijs is verlopen. Dit is de nieuwe; druk nog eens op de knop als u akkoord bent.',
  otherWindow:
    'Deze betaling lijkt ook in een ander venster open te staan. Druk nog eens op de knop om hier te betalen.',
  outdated: 'Deze prijs is niet meer actueel.',
  showPrice: 'Huidige prijs tonen',

  // Screen verification
  verificationTitle: 'Bevestig uw identiteit',
  verificationText: 'Voor dit bedrag moeten we weten wie u bent. Onze partner stelt de vragen.',
  partner: 'Beginnen bij onze partner',
  comeBack: 'Kom naar deze pagina terug als u klaar bent. Ze gaat vanzelf verder.',
  openAgain: 'Opnieuw openen',
  verificationPending: 'Uw gegevens worden gecontroleerd. U kunt deze pagina open laten.',
  verified: 'Identiteit bevestigd.',
  verificationRejected:
    'Uw identiteit kon niet worden bevestigd, dus deze betaling kan niet doorgaan. ' +
    'Ga terug naar {shop} om anders te betalen.',
  send: 'Verzenden',

  // Screen confirm
  confirm_on_ramp: 'Controleren en betalen',
  confirm_off_ramp: 'Controleren en verkopen',
  confirm_swap: 'Controleren en wisselen',
  checkAddress: 'Is dit uw adres? Een cryptotransactie is definitief.',
  checkAccount: 'Is dit uw rekening?',
  toWallet: 'Naar uw wallet',
  toAccount: 'Naar uw rekening',
  pay_on_ramp: '{amount} betalen',
  pay_off_ramp: '{amount} verkopen',
  pay_swap: '{amount} wisselen',
  paying: 'Bezig met betalen…',
  moment: 'Een moment…',
  nextBank: 'Hierna: de bankgegevens voor uw overboeking.',
  nextCrypto: 'Hierna: het adres waarnaar u verstuurt.',
  nextCard: 'Hierna: uw kaartgegevens bij de betaaldienst.',

  // Screen instructions: bank transfer, and transfer of crypto
  bankTitle: 'Maak het bedrag over',
  bankLead: 'Kopieer deze waarden naar de app van uw bank.',
  mindReference: 'Vergeet het kenmerk niet.',
  whyReference: 'Daaraan herkennen we uw betaling.',
  sendTitle: 'Verstuur {amount}',
  sendOn: 'Verstuur op',
  sendOnce: ', in één transactie.',
  scan: 'Scan met uw wallet of kopieer beide waarden',
  scanBank: 'Of scan deze code met de app van uw bank',
  openWallet: 'Openen in wallet-app',
  exact: 'Precies bedrag, {asset}',
  addressOn: 'Adres op {network}',
  qr: 'QR-code van deze waarden, die ook als tekst te zien zijn',

  // Screen instructions: other ways to pay
  redirectTitle: 'Betaal bij uw bank of kaartuitgever',
  redirectText: 'U betaalt op een pagina van de betaaldienst.',
  openLink: 'Betaalpagina openen',
  deposit: 'Bevestig de overboeking in uw wallet.',
  walletTitle: 'Bevestig in uw wallet',

  // Screen instructions: waiting and copying
  waitBank: 'Wachten op uw overboeking',
  waitCrypto: 'Wachten op uw {asset}',
  waitPayment: 'Wachten op uw betaling',
  updates: 'Deze pagina werkt zichzelf bij.',
  sentBank: 'Ik heb het overgemaakt',
  sentCrypto: 'Ik heb de {asset} verstuurd',
  testAddress: 'Dit is een test: stuur niets naar dit adres',
  testPayment: 'Dit is een test: betaal niets. Er wordt geen geld verplaatst.',
  pretendSent: 'Verzending simuleren',
  pretendPaid: 'Betaling simuleren',
  copy: 'Kopiëren',
  copied: 'Gekopieerd',
  copyOf: '{field} kopiëren',
  copiedOf: 'Gekopieerd: {field}.',
  byHand: 'Druk op Ctrl+C (⌘C) om te kopiëren. De tekst is geselecteerd.',

  // Amounts that differ, and the end of the time to pay
  partArrived: '{received} van {required} is binnen.',
  sendRest: 'Verstuur de resterende {rest} op dezelfde manier.',
  moreArrived: '{received} is binnen; gevraagd was {required}. De betaaldienst geeft het verschil terug.',
  timeOver:
    'De tijd om te betalen is voorbij: verstuur nu niets meer. Hebt u al betaald, wacht dan hier. ' +
    'De betaling wordt nog uitgevoerd, of u krijgt het geld terug.',

  // Fields of a transfer, by their name in the API
  i_account_holder: 'Rekeninghouder',
  i_iban: 'IBAN',
  i_bic: 'BIC',
  i_reference: 'Kenmerk',
  i_amount: 'Bedrag',
  i_address: 'Adres',
  i_memo: 'Memo (verplicht)',

  // Screen progress
  progressTitle: 'We zijn ermee bezig',
  progress_on_ramp: 'Zodra uw overboeking binnen is, sturen we {get} naar uw wallet.',
  progressCard: 'Zodra uw betaling is bevestigd, sturen we {get} naar uw wallet.',
  progress_off_ramp: 'Zodra uw {asset} binnen zijn, sturen we {get} naar uw rekening.',
  progress_swap: 'Zodra uw {asset} binnen zijn, sturen we {get} naar uw wallet.',
  placed: 'Opdracht gegeven',
  arrived: '{what} ontvangen',
  transfer: 'Overboeking',
  payment: 'Betaling',
  coinSent: '{what} verstuurd',
  money: 'Geld',
  closePage: 'U kunt deze pagina sluiten. {shop} krijgt het resultaat in elk geval.',
  showBank: 'Bankgegevens tonen',
  showDetails: 'Betaalgegevens tonen',
  cancelPayment: 'Deze betaling annuleren',

  // Screen done
  doneSent: '{amount} verstuurd',
  doneMoney: '{amount} is naar u onderweg',
  doneWallet: 'Onderweg naar uw wallet op {network}.',
  doneAccount: 'Naar uw rekening {account}.',
  doneAnyAccount: 'Naar uw bankrekening.',
  feesIncluded: 'Kosten, inbegrepen',
  date: 'Datum',
  merchant: 'Handelaar',
  keepReference: 'Bewaar het kenmerk.',
  saveReceipt: 'Bewijs opslaan',
  mayClose: 'U kunt deze pagina sluiten.',
  mayReturn: 'U kunt terug naar de winkel.',
  return: 'Terug naar {shop}',
  returnPlain: 'Terug naar de winkel',
  close: 'Sluiten',

  // Screen failed
  declinedTitle: 'De betaling is geweigerd',
  declinedCard:
    'De kaartuitgever heeft geweigerd zonder een reden te geven. Probeer het opnieuw of betaal op een andere manier.',
  declinedBank:
    'De bank heeft geweigerd zonder een reden te geven. Probeer het opnieuw of betaal op een andere manier.',
  failedTitle: 'De betaling is niet gelukt',
  failedText: 'We kennen de reden niet. Probeer het opnieuw of betaal op een andere manier.',
  amount_differs: 'Er is een ander bedrag binnengekomen dan gevraagd. De betaaldienst geeft het terug.',
  expired: 'Het geld is niet op tijd binnengekomen. Hebt u het verstuurd, dan geeft de betaaldienst het terug.',
  returned: 'Het geld is teruggestuurd voordat de betaling klaar was.',
  refused:
    'De bank, de kaartuitgever of het netwerk heeft geweigerd. De betaaldienst geeft terug wat is binnengekomen.',
  paidWith: 'Betaald met',
  triedWith: 'Geprobeerd met',
  failedHelp: 'Is er geld van uw rekening af, betaal dan niet opnieuw. Geef {shop} dit kenmerk.',
  failedHelpCrypto: 'Zijn de {asset} uit uw wallet weg, verstuur ze dan niet opnieuw. Geef {shop} dit kenmerk.',
  retry: 'Opnieuw proberen',
  otherWay: 'Op een andere manier betalen',
  otherCoin: 'Andere munt kiezen',

  // Cancelling a payment
  cancelAndBack: 'Annuleren en terug naar {shop}',
  cancel: 'Annuleren',
  askCancel: 'Deze betaling annuleren?',
  nothingYet: 'Er is niets betaald.',
  askSent: 'Hebt u het geld al verzonden? Annuleer dan niet.',
  riskSent: 'Als u het geld hebt verzonden, komt het door annuleren niet terug.',
  keepGoing: 'Doorgaan',
  keepWaiting: 'Blijven wachten',
  yesCancel: 'Betaling annuleren',
  cancelling: 'Annuleren…',
  paymentCancelled: 'De betaling is geannuleerd. U kunt opnieuw betalen of teruggaan naar de winkel.',

  // Screen unavailable
  unavailableTitle: 'Nu niet beschikbaar',
  unavailableText: 'Deze betaling is hier nu niet mogelijk. Kies in de winkel een andere manier om te betalen.',
  brokenLink: 'Deze betaallink is niet volledig. Open hem opnieuw vanuit de winkel.',

  // Screen over
  expiredTitle: 'Deze betaling is verlopen',
  startAgain: 'Er is niets betaald. Begin opnieuw in de winkel.',
  cancelledTitle: 'Deze betaling is geannuleerd',
  nothingPaid: 'Er is niets betaald.',
  closedTitle: 'Deze betaling is afgesloten',
  closedText: 'De winkel toont de status van uw bestelling.',
  keepAndAsk: 'Hebt u geld verstuurd, bewaar dan dit kenmerk: {reference} en vraag {shop} ernaar.',
  tokenTitle: 'Deze pagina kan niet meer verder',
  tokenText: 'Open de betaling opnieuw vanuit de winkel. Niets wordt dubbel betaald.',

  // Screen offline, and a payment whose result is unknown
  offlineTitle: 'U bent offline',
  offlineText: 'We proberen het opnieuw zodra uw verbinding terug is. Niets wordt dubbel betaald.',
  tryNow: 'Nu proberen',
  online: 'U bent weer online.',
  checkingTitle: 'We controleren uw betaling',
  checkingText:
    'De betaaldienst was niet bereikbaar terwijl u betaalde. Betaal niet opnieuw. Deze pagina toont het resultaat vanzelf.',

  // Buttons and alerts of several screens
  continue: 'Verder',
  back: 'Terug',
  noRate: 'Er is nu geen prijs voor {asset}. Probeer het opnieuw of kies een andere munt.',
  notOffered: '{asset} wordt nu niet op dit netwerk aangeboden. Kies een ander.',
  outOfRange: 'Het bedrag van deze bestelling valt buiten de grenzen van deze keuze. Kies een andere.',
  limits: 'Mogelijk: {min} tot {max}.',
  noChoice: 'Geen keuze past hier bij het bedrag van deze bestelling.',
  tooMany: 'Er waren te veel verzoeken. We proberen het over {seconds} seconden opnieuw.',
  tooLate: 'Annuleren kan niet meer: de betaling wordt uitgevoerd.',
  unreachable: 'We konden de betaaldienst niet bereiken. Niets wordt dubbel betaald. Probeer het opnieuw.',
  requestId: 'Kenmerk: {id}',
  underWay: 'Deze betaling loopt al.',
};
