import type * as en from './en';

/** Texts of the SDK around the widget's frame. */
export const frame: typeof en.frame = {
  title: 'Sichere Zahlung',
  loading: 'Wird geladen …',
};

/** Texts of the widget's page without its scripts. */
export const page: typeof en.page = {
  noscript: 'Diese Seite benötigt JavaScript. Bitte kehren Sie zum Shop zurück.',
};

/** Texts of the widget. Each may name the `{shop}`. */
export const messages: typeof en.messages = {
  // Page: its title, and what is above and below each screen
  title: 'Bezahlen',
  docTitle: '{title} – {shop}',
  docTest: 'Test: {title}',
  testMode: 'Testmodus',
  testNote: ': Es fließt kein echtes Geld',
  powered: 'Bereitgestellt von',
  licences: 'Lizenzen',
  runBy: '{shop} wird von {name} betrieben',
  help: 'Hilfe',
  terms: 'AGB',
  privacy: 'Datenschutz',
  shopName: 'Shop',

  // Progress bar, and waiting for the gate
  stepOf: 'Schritt {step} von 4',
  loading: 'Wird geladen …',
  longer: 'Das dauert länger als sonst. Bitte lassen Sie die Seite offen.',

  // Kinds of payment, and the names of amounts
  on_ramp: 'Kaufen',
  off_ramp: 'Verkaufen',
  swap: 'Tauschen',
  worth: 'Wert',
  youPay: 'Sie zahlen',
  youReceive: 'Sie erhalten',
  youSend: 'Sie senden',
  youPaid: 'Bezahlt',
  youSent: 'Gesendet',
  onItsWay: 'Unterwegs',
  sentToYou: 'An Sie gesendet',
  toPay: 'Zu zahlen',
  rate: 'Kurs',
  payBefore: 'Zahlbar bis',

  // Screen choose: kinds of payment
  chooseTitle: 'Was möchten Sie tun?',
  choose_on_ramp: 'Krypto kaufen',
  choose_off_ramp: 'Krypto verkaufen',
  choose_swap: 'Krypto tauschen',
  kinds: 'Art des Vorgangs',
  selected: '{side} ausgewählt.',

  // Screen choose: what happens, and what the customer needs
  payAmount: 'Sie zahlen {amount}',
  byMethods: 'Per {methods}',
  receiveThis: 'Sie erhalten {amount}',
  aboutToday: 'Heute etwa {amount}. Sie sehen jede Gebühr, bevor Sie zahlen.',
  everyFee: 'Sie sehen jede Gebühr, bevor Sie zahlen.',
  needWallet: 'Sie brauchen eine Wallet-Adresse',
  anyWallet: 'Aus einer Wallet-App oder von Ihrem Konto bei einer Börse',
  sendFromWallet: 'Sie senden Krypto aus Ihrer Wallet',
  needIban: 'Sie brauchen Ihre IBAN',
  needAccount: 'Sie brauchen Ihre Bankverbindung',
  sendOne: 'Sie senden einen Coin',
  receiveAnother: 'Sie erhalten einen anderen im Wert von etwa {amount}',
  needWalletNew: 'Sie brauchen eine Wallet-Adresse für den neuen Coin',

  // Screen details: coin, network and method
  details_on_ramp: 'Ihr Kauf',
  details_off_ramp: 'Ihr Verkauf',
  details_swap: 'Ihr Tausch',
  asset_on_ramp: 'Sie kaufen',
  asset_off_ramp: 'Sie verkaufen',
  network: 'Netzwerk',
  onNetwork: 'Im Netzwerk',
  method: 'Zahlen mit',
  payoutMethod: 'Auszahlung per',
  approx: '≈ {amount}',
  feesAre: 'Gebühren {amount}',
  usually: 'In der Regel {time}',
  usuallyFrom: 'In der Regel {from} bis {to}',

  // Screen details: address of the wallet
  wallet: 'Ihre Wallet-Adresse',
  paste: 'Einfügen',
  pasteAddress: 'Adresse einfügen',
  walletHint: 'Prüfen Sie, ob diese Wallet {asset} auf {network} annimmt.',
  walletOk: 'Gültig auf {network}. Endet auf {end}.',
  walletFixed: 'Von {shop} festgelegt',
  walletEmpty: 'Geben Sie die Adresse Ihrer Wallet ein.',
  walletSum: 'Ein Zeichen dieser Adresse scheint falsch zu sein. Kopieren Sie sie noch einmal aus Ihrer Wallet.',
  walletOther:
    'Das ist eine Adresse für {others}. Sie haben {network} gewählt. ' +
    'Ändern Sie das Netzwerk oder nehmen Sie eine andere Adresse.',
  walletContract:
    'Das ist die Adresse von {asset} selbst, nicht die einer Wallet. Dorthin gesendete Coins sind verloren.',
  walletDead: 'Coins an dieser Adresse kann niemand verwenden. Kopieren Sie die Adresse Ihrer eigenen Wallet.',
  walletElse: 'Das ist keine Adresse auf {network}. Kopieren Sie die ganze Adresse aus Ihrer Wallet.',
  walletRefused:
    'Diese Adresse kann kein {asset} auf {network} empfangen. Kopieren Sie die Adresse Ihrer eigenen Wallet.',
  walletName: 'Das ist ein Name, keine Adresse. Kopieren Sie aus Ihrer Wallet die Adresse, die mit 0x beginnt.',
  walletNameElse: 'Das ist ein Name, keine Adresse. Kopieren Sie die Adresse selbst aus Ihrer Wallet.',
  walletMismatch: 'Die Adresse wurde von {shop} festgelegt und lässt sich nicht ändern. Bitte laden Sie die Seite neu.',

  // Screen details: bank account
  iban: 'Ihre IBAN',
  ibanHint: 'Leerzeichen sind erlaubt.',
  ibanEmpty: 'Geben Sie die IBAN Ihres Kontos ein.',
  ibanWrong: 'Diese IBAN enthält einen Tippfehler. Vergleichen Sie sie mit Ihrer Banking-App.',
  account_holder: 'Kontoinhaber',
  holderWrong: 'Geben Sie den Namen so ein, wie Ihre Bank ihn schreibt, mit 2 bis 70 Zeichen.',
  optional: '{field} (freiwillig)',
  sort_code: 'Sort Code',
  sortWrong: 'Geben Sie die 6 Ziffern des Sort Codes ein.',
  account_number: 'Kontonummer',
  numberWrong: 'Geben Sie die 8 Ziffern der Kontonummer ein.',
  numberWrongUs: 'Geben Sie die 4 bis 17 Ziffern der Kontonummer ein.',
  routing_number: 'Routing-Nummer',
  routingWrong: 'Diese Routing-Nummer enthält einen Tippfehler.',
  account_type: 'Kontoart',
  checking: 'Girokonto',
  savings: 'Sparkonto',

  // Methods of payment, by their id in the catalogue
  m_sepa: 'SEPA-Überweisung',
  m_card: 'Karte',
  m_faster_payments: 'Faster Payments',
  m_ach: 'ACH-Überweisung',

  // Screen price
  priceTitle: 'Ihr Preis',
  onAt: 'Auf {network}, zu {rate}',
  exchanged: 'Getauscht in {asset}',
  serviceFee: 'Servicegebühr',
  networkFee: 'Netzwerkgebühr, {network}',
  held: 'Preis reserviert. Wir erneuern ihn für Sie.',
  heldAsk: 'Preis reserviert. Ändert er sich, fragen wir Sie noch einmal.',
  refreshed: 'Der Preis wird automatisch erneuert',
  priceLoading: 'Preis wird geladen …',
  says_on_ramp: 'Sie erhalten {get}. Sie zahlen {give}, darin {fees} Gebühren.',
  says_off_ramp: 'Sie senden {give}. Sie erhalten {get}, Gebühren von {fees} sind schon abgezogen.',

  // Prices that changed or ran out
  changed: 'Der Preis hat sich geändert.',
  less: 'Sie erhalten {amount} weniger als zuvor.',
  more: 'Sie erhalten {amount} mehr als zuvor.',
  sendMore: 'Sie senden {amount} mehr als zuvor.',
  sendLess: 'Sie senden {amount} weniger als zuvor.',
  same_on_ramp: 'Sie zahlen gleich viel.',
  same_off_ramp: 'Sie erhalten gleich viel.',
  same_swap: 'Sie senden gleich viel.',
  feesChanged: 'Die Gebühren betrugen {before} und betragen jetzt {now}.',
  rateChanged: 'Der Kurs war {before}. Die Beträge sind gleich.',
  before: 'Zuvor: {amount}',
  pressAgain: 'Drücken Sie die Taste noch einmal, wenn Sie einverstanden sind.',
  ranOut:
    'Der Preis ist abgelaufen. Dies ist der neue; drücken Sie die Taste noch einmal, wenn Sie einverstanden sind.',
  otherWindow:
    'Diese Zahlung ist wohl auch in einem anderen Fenster offen. Drücken Sie die Taste noch einmal, um hier zu zahlen.',
  outdated: 'Dieser Preis ist nicht mehr aktuell.',
  showPrice: 'Aktuellen Preis zeigen',

  // Screen verification
  verificationTitle: 'Identität bestätigen',
  verificationText: 'Bei diesem Betrag müssen wir wissen, wer Sie sind. Die Fragen stellt unser Partner.',
  partner: 'Beim Partner beginnen',
  comeBack: 'Kommen Sie danach auf diese Seite zurück. Sie geht von selbst weiter.',
  openAgain: 'Noch einmal öffnen',
  verificationPending: 'Ihre Angaben werden geprüft. Sie können diese Seite offen lassen.',
  verified: 'Identität bestätigt.',
  verificationRejected:
    'Ihre Identität konnte nicht bestätigt werden, daher geht es mit dieser Zahlung nicht weiter. ' +
    'Andere Zahlungswege finden Sie bei {shop}.',
  send: 'Senden',

  // Screen confirm
  confirm_on_ramp: 'Prüfen und zahlen',
  confirm_off_ramp: 'Prüfen und verkaufen',
  confirm_swap: 'Prüfen und tauschen',
  checkAddress: 'Ist das Ihre Adresse? Eine Krypto-Überweisung ist endgültig.',
  checkAccount: 'Ist das Ihr Konto?',
  toWallet: 'An Ihre Wallet',
  toAccount: 'Auf Ihr Konto',
  pay_on_ramp: '{amount} zahlen',
  pay_off_ramp: '{amount} verkaufen',
  pay_swap: '{amount} tauschen',
  paying: 'Zahlung läuft …',
  moment: 'Einen Moment …',
  nextBank: 'Als Nächstes: die Bankdaten für Ihre Überweisung.',
  nextCrypto: 'Als Nächstes: die Adresse, an die Sie senden.',
  nextCard: 'Als Nächstes: Ihre Kartendaten beim Zahlungsanbieter.',

  // Screen instructions: bank transfer, and transfer of crypto
  bankTitle: 'Jetzt überweisen',
  bankLead: 'Kopieren Sie diese Werte in Ihre Banking-App.',
  mindReference: 'Vergessen Sie den Verwendungszweck nicht.',
  whyReference: 'Daran erkennen wir Ihre Zahlung.',
  sendTitle: '{amount} senden',
  sendOn: 'Senden Sie auf',
  sendOnce: ', in einer Überweisung.',
  scan: 'Mit der Wallet scannen oder beide Werte kopieren',
  scanBank: 'Oder scannen Sie diesen Code mit Ihrer Banking-App',
  openWallet: 'In Wallet-App öffnen',
  exact: 'Genauer Betrag, {asset}',
  addressOn: 'Adresse auf {network}',
  qr: 'QR-Code dieser Werte, die auch als Text zu sehen sind',

  // Screen instructions: other ways to pay
  redirectTitle: 'Bei Ihrer Bank oder Kartenfirma zahlen',
  redirectText: 'Sie zahlen auf einer Seite des Zahlungsanbieters.',
  openLink: 'Zahlungsseite öffnen',
  deposit: 'Bestätigen Sie die Überweisung in Ihrer Wallet.',
  walletTitle: 'In der Wallet bestätigen',

  // Screen instructions: waiting and copying
  waitBank: 'Wir warten auf Ihre Überweisung',
  waitCrypto: 'Wir warten auf Ihre {asset}',
  waitPayment: 'Wir warten auf Ihre Zahlung',
  updates: 'Diese Seite aktualisiert sich von selbst.',
  sentBank: 'Ich habe überwiesen',
  sentCrypto: 'Ich habe die {asset} gesendet',
  testAddress: 'Dies ist ein Test: Senden Sie nichts an diese Adresse',
  testPayment: 'Dies ist ein Test: Zahlen Sie nichts. Es fließt kein Geld.',
  pretendSent: 'Senden simulieren',
  pretendPaid: 'Zahlung simulieren',
  copy: 'Kopieren',
  copied: 'Kopiert',
  copyOf: '{field} kopieren',
  copiedOf: 'Kopiert: {field}.',
  byHand: 'Kopieren Sie mit Strg+C (⌘C). Der Text ist markiert.',

  // Amounts that differ, and the end of the time to pay
  partArrived: '{received} von {required} sind eingegangen.',
  sendRest: 'Senden Sie die restlichen {rest} auf demselben Weg.',
  moreArrived:
    '{received} sind eingegangen, verlangt waren {required}. Der Zahlungsanbieter gibt die Differenz zurück.',
  timeOver:
    'Die Zeit zum Zahlen ist abgelaufen: Bitte senden Sie jetzt nichts mehr. ' +
    'Falls Sie schon gezahlt haben, warten Sie hier. ' +
    'Die Zahlung wird noch ausgeführt, oder Sie erhalten das Geld zurück.',

  // Fields of a transfer, by their name in the API
  i_account_holder: 'Kontoinhaber',
  i_iban: 'IBAN',
  i_bic: 'BIC',
  i_reference: 'Referenz',
  i_amount: 'Betrag',
  i_address: 'Adresse',
  i_memo: 'Memo (erforderlich)',

  // Screen progress
  progressTitle: 'Wir sind dabei',
  progress_on_ramp: 'Sobald Ihre Überweisung eintrifft, senden wir {get} an Ihre Wallet.',
  progressCard: 'Sobald Ihre Zahlung bestätigt ist, senden wir {get} an Ihre Wallet.',
  progress_off_ramp: 'Sobald Ihre {asset} eintreffen, senden wir {get} auf Ihr Konto.',
  progress_swap: 'Sobald Ihre {asset} eintreffen, senden wir {get} an Ihre Wallet.',
  placed: 'Auftrag erteilt',
  arrived: '{what} eingegangen',
  transfer: 'Überweisung',
  payment: 'Zahlung',
  coinSent: '{what} gesendet',
  money: 'Geld',
  closePage: 'Sie können diese Seite schließen. {shop} erfährt das Ergebnis auf jeden Fall.',
  showBank: 'Bankdaten zeigen',
  showDetails: 'Zahlungsdaten zeigen',
  cancelPayment: 'Diese Zahlung abbrechen',

  // Screen done
  doneSent: '{amount} gesendet',
  doneMoney: '{amount} sind unterwegs zu Ihnen',
  doneWallet: 'Unterwegs an Ihre Wallet auf {network}.',
  doneAccount: 'Auf Ihr Konto {account}.',
  doneAnyAccount: 'Auf Ihr Bankkonto.',
  feesIncluded: 'Gebühren, enthalten',
  date: 'Datum',
  merchant: 'Händler',
  keepReference: 'Heben Sie die Referenz auf.',
  saveReceipt: 'Beleg speichern',
  mayClose: 'Sie können diese Seite schließen.',
  mayReturn: 'Sie können zum Shop zurückkehren.',
  return: 'Zurück zu {shop}',
  returnPlain: 'Zurück zum Shop',
  close: 'Schließen',

  // Screen failed
  declinedTitle: 'Die Zahlung wurde abgelehnt',
  declinedCard:
    'Die Kartenfirma hat ohne Angabe von Gründen abgelehnt. Versuchen Sie es noch einmal oder zahlen Sie anders.',
  declinedBank: 'Die Bank hat ohne Angabe von Gründen abgelehnt. Versuchen Sie es noch einmal oder zahlen Sie anders.',
  failedTitle: 'Die Zahlung ist nicht zustande gekommen',
  failedText: 'Den Grund kennen wir nicht. Versuchen Sie es noch einmal oder zahlen Sie anders.',
  amount_differs: 'Es ist ein anderer Betrag eingegangen als verlangt. Der Zahlungsanbieter gibt ihn zurück.',
  expired:
    'Das Geld ist nicht rechtzeitig eingegangen. Falls Sie es gesendet haben, gibt der Zahlungsanbieter es zurück.',
  returned: 'Das Geld wurde zurückgesendet, bevor die Zahlung abgeschlossen war.',
  refused:
    'Die Bank, die Kartenfirma oder das Netzwerk hat sie abgelehnt. ' +
    'Der Zahlungsanbieter gibt zurück, was eingegangen ist.',
  paidWith: 'Bezahlt mit',
  triedWith: 'Versucht mit',
  failedHelp:
    'Falls Geld von Ihrem Konto abgegangen ist, zahlen Sie nicht noch einmal. Nennen Sie {shop} diese Referenz.',
  failedHelpCrypto:
    'Falls die {asset} Ihre Wallet verlassen haben, senden Sie nicht noch einmal. Nennen Sie {shop} diese Referenz.',
  retry: 'Noch einmal versuchen',
  otherWay: 'Andere Zahlungsart wählen',
  otherCoin: 'Anderen Coin wählen',

  // Cancelling a payment
  cancelAndBack: 'Abbrechen und zurück zu {shop}',
  cancel: 'Abbrechen',
  askCancel: 'Diese Zahlung abbrechen?',
  nothingYet: 'Es wurde nichts bezahlt.',
  askSent: 'Haben Sie das Geld schon gesendet? Dann brechen Sie nicht ab.',
  riskSent: 'Wenn Sie das Geld gesendet haben, bringt der Abbruch es nicht zurück.',
  keepGoing: 'Weitermachen',
  keepWaiting: 'Weiter warten',
  yesCancel: 'Zahlung abbrechen',
  cancelling: 'Wird abgebrochen …',
  paymentCancelled: 'Die Zahlung wurde abgebrochen. Sie können noch einmal zahlen oder zum Shop zurückkehren.',

  // Screen unavailable
  unavailableTitle: 'Zurzeit nicht verfügbar',
  unavailableText: 'Diese Zahlung ist hier zurzeit nicht möglich. Bitte wählen Sie im Shop eine andere Zahlungsart.',
  brokenLink: 'Dieser Zahlungslink ist unvollständig. Öffnen Sie ihn noch einmal aus dem Shop.',

  // Screen over
  expiredTitle: 'Diese Zahlung ist abgelaufen',
  startAgain: 'Es wurde nichts bezahlt. Beginnen Sie im Shop neu.',
  cancelledTitle: 'Diese Zahlung wurde abgebrochen',
  nothingPaid: 'Es wurde nichts bezahlt.',
  closedTitle: 'Diese Zahlung ist abgeschlossen',
  closedText: 'Den Stand Ihrer Bestellung sehen Sie im Shop.',
  keepAndAsk:
    'Falls Sie Geld gesendet haben, bewahren Sie diese Referenz auf: {reference}. Fragen Sie damit bei {shop} nach.',
  tokenTitle: 'Auf dieser Seite geht es nicht weiter',
  tokenText: 'Öffnen Sie die Zahlung noch einmal aus dem Shop. Nichts wird doppelt bezahlt.',

  // Screen offline, and a payment whose result is unknown
  offlineTitle: 'Sie sind offline',
  offlineText: 'Wir versuchen es wieder, sobald die Verbindung steht. Nichts wird doppelt bezahlt.',
  tryNow: 'Jetzt versuchen',
  online: 'Sie sind wieder online.',
  checkingTitle: 'Wir prüfen Ihre Zahlung',
  checkingText:
    'Der Zahlungsdienst war während der Zahlung nicht erreichbar. Bitte zahlen Sie nicht noch einmal. Das Ergebnis erscheint hier von selbst.',

  // Buttons and alerts of several screens
  continue: 'Weiter',
  back: 'Zurück',
  noRate: 'Für {asset} gibt es zurzeit keinen Preis. Versuchen Sie es noch einmal oder wählen Sie einen anderen Coin.',
  notOffered: '{asset} wird auf diesem Netzwerk zurzeit nicht angeboten. Wählen Sie ein anderes.',
  outOfRange: 'Der Betrag dieser Bestellung liegt außerhalb der Grenzen dieser Auswahl. Wählen Sie etwas anderes.',
  limits: 'Möglich: {min} bis {max}.',
  noChoice: 'Für den Betrag dieser Bestellung gibt es hier keine Auswahl.',
  tooMany: 'Es waren zu viele Anfragen. Wir versuchen es in {seconds} Sekunden wieder.',
  tooLate: 'Zum Abbrechen ist es zu spät: Die Zahlung wird ausgeführt.',
  unreachable:
    'Wir konnten den Zahlungsdienst nicht erreichen. Nichts wird doppelt bezahlt. Versuchen Sie es noch einmal.',
  requestId: 'Referenz: {id}',
  underWay: 'Diese Zahlung läuft bereits.',
};
