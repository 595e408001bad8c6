import type * as en from './en';

/** Texts of the SDK around the widget's frame. */
export const frame: typeof en.frame = {
  title: 'Paiement sécurisé',
  loading: 'Chargement…',
};

/** Texts of the widget's page without its scripts. */
export const page: typeof en.page = {
  noscript: 'Cette page nécessite JavaScript. Veuillez retourner à la boutique.',
};

/** Texts of the widget. Each may name the `{shop}`. */
export const messages: typeof en.messages = {
  // Page: its title, and what is above and below each screen
  title: 'Paiement',
  docTitle: '{title} – {shop}',
  docTest: 'Test\u00a0: {title}',
  testMode: 'Mode test',
  testNote: '\u00a0: aucun argent réel ne circule',
  powered: 'Proposé par',
  licences: 'Licences',
  runBy: '{shop} est un service de {name}',
  help: 'Aide',
  terms: 'Conditions',
  privacy: 'Confidentialité',
  shopName: 'Boutique',

  // Progress bar, and waiting for the gate
  stepOf: 'Étape {step} sur 4',
  loading: 'Chargement…',
  longer: 'Cela prend plus de temps que d’habitude. Laissez cette page ouverte.',

  // Kinds of payment, and the names of amounts
  on_ramp: 'Acheter',
  off_ramp: 'Vendre',
  swap: 'Échanger',
  worth: 'Valeur',
  youPay: 'Vous payez',
  youReceive: 'Vous recevez',
  youSend: 'Vous envoyez',
  youPaid: 'Vous avez payé',
  youSent: 'Vous avez envoyé',
  onItsWay: 'En route',
  sentToYou: 'Montant envoyé',
  toPay: 'À payer',
  rate: 'Cours',
  payBefore: 'À payer avant',

  // Screen choose: kinds of payment
  chooseTitle: 'Que souhaitez\u2011vous faire\u00a0?',
  choose_on_ramp: 'Acheter des cryptos',
  choose_off_ramp: 'Vendre des cryptos',
  choose_swap: 'Échanger des cryptos',
  kinds: 'Type d’opération',
  selected: '{side}\u00a0: sélectionné.',

  // Screen choose: what happens, and what the customer needs
  payAmount: 'Vous payez {amount}',
  byMethods: 'Par {methods}',
  receiveThis: 'Vous recevez {amount}',
  aboutToday: 'Environ {amount} aujourd’hui. Vous voyez tous les frais avant de payer.',
  everyFee: 'Vous voyez tous les frais avant de payer.',
  needWallet: 'Il vous faut une adresse de portefeuille',
  anyWallet: 'D’une application de portefeuille ou de votre compte sur une plateforme',
  sendFromWallet: 'Vous envoyez des cryptos depuis votre portefeuille',
  needIban: 'Il vous faut votre IBAN',
  needAccount: 'Il vous faut vos coordonnées bancaires',
  sendOne: 'Vous envoyez une crypto',
  receiveAnother: 'Vous en recevez une autre, d’une valeur d’environ {amount}',
  needWalletNew: 'Il vous faut une adresse de portefeuille pour la nouvelle crypto',

  // Screen details: coin, network and method
  details_on_ramp: 'Votre achat',
  details_off_ramp: 'Votre vente',
  details_swap: 'Votre échange',
  asset_on_ramp: 'Vous achetez',
  asset_off_ramp: 'Vous vendez',
  network: 'Réseau',
  onNetwork: 'Sur le réseau',
  method: 'Payer par',
  payoutMethod: 'Recevoir par',
  approx: '≈ {amount}',
  feesAre: 'Frais {amount}',
  usually: 'Généralement {time}',
  usuallyFrom: 'Généralement de {from} à {to}',

  // Screen details: address of the wallet
  wallet: 'L’adresse de votre portefeuille',
  paste: 'Coller',
  pasteAddress: 'Coller l’adresse',
  walletHint: 'Vérifiez que ce portefeuille accepte {asset} sur {network}.',
  walletOk: 'Valable sur {network}. Elle se termine par {end}.',
  walletFixed: 'Définie par {shop}',
  walletEmpty: 'Saisissez l’adresse de votre portefeuille.',
  walletSum: 'Un caractère de cette adresse semble faux. Copiez-la de nouveau depuis votre portefeuille.',
  walletOther:
    'C’est une adresse pour {others}. Vous avez choisi {network}. ' +
    'Changez de réseau ou utilisez une autre adresse.',
  walletContract: 'C’est l’adresse de {asset} même, pas celle d’un portefeuille. Les cryptos envoyées là sont perdues.',
  walletDead: 'Personne ne peut utiliser de cryptos à cette adresse. Copiez l’adresse de votre propre portefeuille.',
  walletElse: 'Ce n’est pas une adresse sur {network}. Copiez l’adresse entière depuis votre portefeuille.',
  walletRefused:
    'Cette adresse ne peut pas recevoir de {asset} sur {network}. Copiez l’adresse de votre propre portefeuille.',
  walletName: 'C’est un nom, pas une adresse. Copiez depuis votre portefeuille l’adresse qui commence par 0x.',
  walletNameElse: 'C’est un nom, pas une adresse. Copiez l’adresse elle-même depuis votre portefeuille.',
  walletMismatch: 'L’adresse a été définie par {shop} et ne peut pas être modifiée. Veuillez recharger la page.',

  // Screen details: bank account
  iban: 'Votre IBAN',
  ibanHint: 'Les espaces sont acceptés.',
  ibanEmpty: 'Saisissez l’IBAN de votre compte.',
  ibanWrong: 'Cet IBAN contient une faute de frappe. Comparez-le avec l’application de votre banque.',
  account_holder: 'Titulaire du compte',
  holderWrong: 'Saisissez le nom tel que votre banque l’écrit, de 2 à 70 caractères.',
  optional: '{field} (facultatif)',
  sort_code: 'Sort code',
  sortWrong: 'Saisissez les 6 chiffres du sort code.',
  account_number: 'Numéro de compte',
  numberWrong: 'Saisissez les 8 chiffres du numéro de compte.',
  numberWrongUs: 'Saisissez les 4 à 17 chiffres du numéro de compte.',
  routing_number: 'Numéro de routage',
  routingWrong: 'Ce numéro de routage contient une faute de frappe.',
  account_type: 'Type de compte',
  checking: 'Compte courant',
  savings: 'Compte d’épargne',

  // Methods of payment, by their id in the catalogue
  m_sepa: 'Virement SEPA',
  m_card: 'Carte',
  m_faster_payments: 'Faster Payments',
  m_ach: 'Virement ACH',

  // Screen price
  priceTitle: 'Votre prix',
  onAt: 'Sur {network}, à {rate}',
  exchanged: 'Échangé contre {asset}',
  serviceFee: 'Frais de service',
  networkFee: 'Frais de réseau, {network}',
  held: 'Prix garanti. Nous l’actualisons pour vous.',
  heldAsk: 'Prix garanti. S’il change, nous vous redemanderons.',
  refreshed: 'Le prix s’actualise tout seul',
  priceLoading: 'Chargement du prix…',
  says_on_ramp: 'Vous recevez {get}. Vous payez {give}, dont {fees} de frais.',
  says_off_ramp: 'Vous envoyez {give}. Vous recevez {get}, une fois {fees} de frais déduits.',

  // Prices that changed or ran out
  changed: 'Le prix a changé.',
  less: 'Vous recevez {amount} de moins qu’avant.',
  more: 'Vous recevez {amount} de plus qu’avant.',
  sendMore: 'Vous envoyez {amount} de plus qu’avant.',
  sendLess: 'Vous envoyez {amount} de moins qu’avant.',
  same_on_ramp: 'Ce que vous payez ne change pas.',
  same_off_ramp: 'Ce que vous recevez ne change pas.',
  same_swap: 'Ce que vous envoyez ne change pas.',
  feesChanged: 'Les frais étaient de {before}, ils sont maintenant de {now}.',
  rateChanged: 'Le cours était {before}. Les montants ne changent pas.',
  before: 'Avant\u00a0: {amount}',
  pressAgain: 'Appuyez de nouveau sur le bouton si vous êtes d’accord.',
  ranOut: 'Le prix a expiré. Voici le nouveau\u00a0; appuyez de nouveau sur le bouton si vous êtes d’accord.',
  otherWindow: 'Ce paiement semble ouvert dans une autre fenêtre. Appuyez de nouveau sur le bouton pour payer ici.',
  outdated: 'Ce prix n’est plus à jour.',
  showPrice: 'Afficher le prix actuel',

  // Screen verification
  verificationTitle: 'Confirmez votre identité',
  verificationText: 'Pour ce montant, nous devons savoir qui vous êtes. Notre partenaire pose les questions.',
  partner: 'Commencer chez notre partenaire',
  comeBack: 'Revenez sur cette page quand vous avez terminé. Elle continue toute seule.',
  openAgain: 'Ouvrir de nouveau',
  verificationPending: 'Vos informations sont en cours de vérification. Vous pouvez laisser cette page ouverte.',
  verified: 'Identité confirmée.',
  verificationRejected:
    'Votre identité n’a pas pu être confirmée, ce paiement ne peut donc pas continuer. ' +
    'Retournez chez {shop} pour payer autrement.',
  send: 'Envoyer',

  // Screen confirm
  confirm_on_ramp: 'Vérifier et payer',
  confirm_off_ramp: 'Vérifier et vendre',
  confirm_swap: 'Vérifier et échanger',
  checkAddress: 'Est-ce bien votre adresse\u00a0? Un transfert de cryptos est définitif.',
  checkAccount: 'Est-ce bien votre compte\u00a0?',
  toWallet: 'Vers votre portefeuille',
  toAccount: 'Vers votre compte',
  pay_on_ramp: 'Payer {amount}',
  pay_off_ramp: 'Vendre {amount}',
  pay_swap: 'Échanger {amount}',
  paying: 'Paiement en cours…',
  moment: 'Un instant…',
  nextBank: 'Ensuite\u00a0: les coordonnées bancaires pour votre virement.',
  nextCrypto: 'Ensuite\u00a0: l’adresse où envoyer.',
  nextCard: 'Ensuite\u00a0: votre carte, chez le prestataire de paiement.',

  // Screen instructions: bank transfer, and transfer of crypto
  bankTitle: 'Faites votre virement',
  bankLead: 'Copiez ces valeurs dans l’application de votre banque.',
  mindReference: 'N’oubliez pas la référence.',
  whyReference: 'Elle nous permet de retrouver votre paiement.',
  sendTitle: 'Envoyez {amount}',
  sendOn: 'Envoyez sur',
  sendOnce: ', en un seul transfert.',
  scan: 'Scannez avec votre portefeuille ou copiez les deux valeurs',
  scanBank: 'Ou scannez ce code avec l’application de votre banque',
  openWallet: 'Ouvrir dans l’application du portefeuille',
  exact: 'Montant exact, {asset}',
  addressOn: 'Adresse sur {network}',
  qr: 'Code QR de ces valeurs, aussi affichées en texte',

  // Screen instructions: other ways to pay
  redirectTitle: 'Payez auprès de votre banque ou de l’émetteur de votre carte',
  redirectText: 'Vous payez sur une page du prestataire de paiement.',
  openLink: 'Ouvrir la page de paiement',
  deposit: 'Confirmez le transfert dans votre portefeuille.',
  walletTitle: 'Confirmez dans votre portefeuille',

  // Screen instructions: waiting and copying
  waitBank: 'En attente de votre virement',
  waitCrypto: 'En attente de vos {asset}',
  waitPayment: 'En attente de votre paiement',
  updates: 'Cette page se met à jour toute seule.',
  sentBank: 'J’ai fait le virement',
  sentCrypto: 'J’ai envoyé les {asset}',
  testAddress: 'Ceci est un test\u00a0: n’envoyez rien à cette adresse',
  testPayment: 'Ceci est un test\u00a0: ne payez rien. Aucun argent ne circule.',
  pretendSent: 'Simuler l’envoi',
  pretendPaid: 'Simuler le paiement',
  copy: 'Copier',
  copied: 'Copié',
  copyOf: 'Copier\u00a0: {field}',
  copiedOf: 'Copié\u00a0: {field}.',
  byHand: 'Appuyez sur Ctrl+C (⌘C) pour copier. Le texte est sélectionné.',

  // Amounts that differ, and the end of the time to pay
  partArrived: 'Nous avons reçu {received} sur {required}.',
  sendRest: 'Envoyez les {rest} restants de la même manière.',
  moreArrived: 'Nous avons reçu {received} au lieu de {required}. Le prestataire de paiement rembourse la différence.',
  timeOver:
    'Le délai de paiement est écoulé\u00a0: n’envoyez plus rien. Si vous avez déjà payé, attendez ici. ' +
    'Le paiement aboutira, ou l’argent vous sera rendu.',

  // Fields of a transfer, by their name in the API
  i_account_holder: 'Titulaire du compte',
  i_iban: 'IBAN',
  i_bic: 'BIC',
  i_reference: 'Référence',
  i_amount: 'Montant',
  i_address: 'Adresse',
  i_memo: 'Mémo (obligatoire)',

  // Screen progress
  progressTitle: 'Nous nous en occupons',
  progress_on_ramp: 'Dès que votre virement arrive, nous envoyons {get} vers votre portefeuille.',
  progressCard: 'Dès que votre paiement est confirmé, nous envoyons {get} vers votre portefeuille.',
  progress_off_ramp: 'Dès que vos {asset} arrivent, nous envoyons {get} sur votre compte.',
  progress_swap: 'Dès que vos {asset} arrivent, nous envoyons {get} vers votre portefeuille.',
  placed: 'Ordre passé',
  arrived: '{what}\u00a0: réception',
  transfer: 'Virement',
  payment: 'Paiement',
  coinSent: '{what}\u00a0: envoi',
  money: 'Argent',
  closePage: 'Vous pouvez fermer cette page. {shop} reçoit le résultat dans tous les cas.',
  showBank: 'Afficher les coordonnées bancaires',
  showDetails: 'Afficher les informations de paiement',
  cancelPayment: 'Annuler ce paiement',

  // Screen done
  doneSent: '{amount}\u00a0: envoyé',
  doneMoney: '{amount} en route vers vous',
  doneWallet: 'En route vers votre portefeuille sur {network}.',
  doneAccount: 'Vers votre compte {account}.',
  doneAnyAccount: 'Vers votre compte bancaire.',
  feesIncluded: 'Frais, inclus',
  date: 'Date',
  merchant: 'Marchand',
  keepReference: 'Conservez la référence.',
  saveReceipt: 'Enregistrer le reçu',
  mayClose: 'Vous pouvez fermer cette page.',
  mayReturn: 'Vous pouvez retourner à la boutique.',
  return: 'Retour chez {shop}',
  returnPlain: 'Retour à la boutique',
  close: 'Fermer',

  // Screen failed
  declinedTitle: 'Le paiement a été refusé',
  declinedCard: 'L’émetteur de la carte l’a refusé sans donner de raison. Réessayez ou payez autrement.',
  declinedBank: 'La banque l’a refusé sans donner de raison. Réessayez ou payez autrement.',
  failedTitle: 'Le paiement n’a pas abouti',
  failedText: 'Nous n’en connaissons pas la raison. Réessayez ou payez autrement.',
  amount_differs: 'Le montant reçu n’est pas celui demandé. Le prestataire de paiement le rembourse.',
  expired: 'L’argent n’est pas arrivé à temps. Si vous l’avez envoyé, le prestataire de paiement le rembourse.',
  returned: 'L’argent a été renvoyé avant la fin du paiement.',
  refused:
    'La banque, l’émetteur de la carte ou le réseau l’a refusé. ' +
    'Le prestataire de paiement rembourse ce qui est arrivé.',
  paidWith: 'Payé par',
  triedWith: 'Essayé par',
  failedHelp: 'Si votre compte a été débité, ne payez pas de nouveau. Donnez cette référence à {shop}.',
  failedHelpCrypto:
    'Si les {asset} ont quitté votre portefeuille, ne les renvoyez pas. Donnez cette référence à {shop}.',
  retry: 'Réessayer',
  otherWay: 'Payer autrement',
  otherCoin: 'Choisir une autre crypto',

  // Cancelling a payment
  cancelAndBack: 'Annuler et retourner chez {shop}',
  cancel: 'Annuler',
  askCancel: 'Annuler ce paiement\u00a0?',
  nothingYet: 'Rien n’a été payé.',
  askSent: 'Avez-vous déjà envoyé l’argent\u00a0? Alors n’annulez pas.',
  riskSent: 'Si vous avez envoyé l’argent, l’annulation ne le fait pas revenir.',
  keepGoing: 'Continuer',
  keepWaiting: 'Continuer d’attendre',
  yesCancel: 'Annuler le paiement',
  cancelling: 'Annulation…',
  paymentCancelled: 'Le paiement a été annulé. Vous pouvez payer de nouveau ou retourner à la boutique.',

  // Screen unavailable
  unavailableTitle: 'Indisponible pour le moment',
  unavailableText:
    'Ce paiement n’est pas possible ici pour le moment. Choisissez un autre moyen de paiement dans la boutique.',
  brokenLink: 'Ce lien de paiement est incomplet. Ouvrez-le de nouveau depuis la boutique.',

  // Screen over
  expiredTitle: 'Ce paiement a expiré',
  startAgain: 'Rien n’a été payé. Recommencez dans la boutique.',
  cancelledTitle: 'Ce paiement a été annulé',
  nothingPaid: 'Rien n’a été payé.',
  closedTitle: 'Ce paiement est clos',
  closedText: 'La boutique affiche l’état de votre commande.',
  keepAndAsk:
    'Si vous avez envoyé de l’argent, conservez cette référence\u00a0: {reference}, et adressez-vous à {shop}.',
  tokenTitle: 'Cette page ne peut plus continuer',
  tokenText: 'Ouvrez de nouveau le paiement depuis la boutique. Rien n’est payé deux fois.',

  // Screen offline, and a payment whose result is unknown
  offlineTitle: 'Vous êtes hors ligne',
  offlineText: 'Nous réessayons dès que votre connexion revient. Rien n’est payé deux fois.',
  tryNow: 'Réessayer maintenant',
  online: 'Vous êtes de nouveau en ligne.',
  checkingTitle: 'Nous vérifions votre paiement',
  checkingText:
    'Le service de paiement n’était pas joignable pendant le paiement. Ne payez pas de nouveau. Le résultat s’affichera ici tout seul.',

  // Buttons and alerts of several screens
  continue: 'Continuer',
  back: 'Retour',
  noRate: 'Il n’y a pas de prix pour {asset} en ce moment. Réessayez ou choisissez une autre crypto.',
  notOffered: '{asset} n’est pas proposé sur ce réseau en ce moment. Choisissez-en un autre.',
  outOfRange: 'Le montant de cette commande est hors des limites de ce choix. Choisissez autre chose.',
  limits: 'Possible\u00a0: de {min} à {max}.',
  noChoice: 'Aucun choix n’accepte ici le montant de cette commande.',
  tooMany: 'Il y a eu trop de demandes. Nous réessayons dans {seconds} secondes.',
  tooLate: 'Il est trop tard pour annuler\u00a0: le paiement est en cours d’exécution.',
  unreachable: 'Nous n’avons pas pu joindre le service de paiement. Rien n’est payé deux fois. Réessayez.',
  requestId: 'Référence\u00a0: {id}',
  underWay: 'Ce paiement est déjà en cours.',
};
