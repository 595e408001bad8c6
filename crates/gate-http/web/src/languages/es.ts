import type * as en from './en';

/** Texts of the SDK around the widget's frame. */
export const frame: typeof en.frame = {
  title: 'Pago seguro',
  loading: 'Cargando…',
};

/** Texts of the widget's page without its scripts. */
export const page: typeof en.page = {
  noscript: 'Esta página necesita JavaScript. Vuelve a la tienda.',
};

/** Texts of the widget. Each may name the `{shop}`. */
export const messages: typeof en.messages = {
  // Page: its title, and what is above and below each screen
  title: 'Pago',
  docTitle: '{title} – {shop}',
  docTest: 'Prueba: {title}',
  testMode: 'Modo de prueba',
  testNote: ': no se mueve dinero real',
  powered: 'Con la tecnología de',
  licences: 'Licencias',
  runBy: '{shop} es un servicio de {name}',
  help: 'Ayuda',
  terms: 'Condiciones',
  privacy: 'Privacidad',
  shopName: 'Tienda',

  // Progress bar, and waiting for the gate
  stepOf: 'Paso {step} de 4',
  loading: 'Cargando…',
  longer: 'Está tardando más de lo normal. Deja la página abierta.',

  // Kinds of payment, and the names of amounts
  on_ramp: 'Comprar',
  off_ramp: 'Vender',
  swap: 'Cambiar',
  worth: 'Valor',
  youPay: 'Pagas',
  youReceive: 'Recibes',
  youSend: 'Envías',
  youPaid: 'Has pagado',
  youSent: 'Has enviado',
  onItsWay: 'En camino',
  sentToYou: 'Enviado a ti',
  toPay: 'A pagar',
  rate: 'Tipo de cambio',
  payBefore: 'Paga antes de',

  // Screen choose: kinds of payment
  chooseTitle: '¿Qué quieres hacer?',
  choose_on_ramp: 'Comprar cripto',
  choose_off_ramp: 'Vender cripto',
  choose_swap: 'Cambiar cripto',
  kinds: 'Tipo de operación',
  selected: '{side}: seleccionado.',

  // Screen choose: what happens, and what the customer needs
  payAmount: 'Pagas {amount}',
  byMethods: 'Con {methods}',
  receiveThis: 'Recibes {amount}',
  aboutToday: 'Unos {amount} hoy. Ves todas las comisiones antes de pagar.',
  everyFee: 'Ves todas las comisiones antes de pagar.',
  needWallet: 'Necesitas una dirección de monedero',
  anyWallet: 'De una aplicación de monedero o de tu cuenta en una plataforma',
  sendFromWallet: 'Envías cripto desde tu monedero',
  needIban: 'Necesitas tu IBAN',
  needAccount: 'Necesitas tus datos bancarios',
  sendOne: 'Envías una criptomoneda',
  receiveAnother: 'Recibes otra, por un valor de unos {amount}',
  needWalletNew: 'Necesitas una dirección de monedero para la nueva',

  // Screen details: coin, network and method
  details_on_ramp: 'Tu compra',
  details_off_ramp: 'Tu venta',
  details_swap: 'Tu cambio',
  asset_on_ramp: 'Compras',
  asset_off_ramp: 'Vendes',
  network: 'Red',
  onNetwork: 'En la red',
  method: 'Pagar con',
  payoutMethod: 'Recibir por',
  approx: '≈ {amount}',
  feesAre: 'Comisiones {amount}',
  usually: 'Normalmente {time}',
  usuallyFrom: 'Normalmente de {from} a {to}',

  // Screen details: address of the wallet
  wallet: 'La dirección de tu monedero',
  paste: 'Pegar',
  pasteAddress: 'Pegar la dirección',
  walletHint: 'Comprueba que este monedero acepta {asset} en {network}.',
  walletOk: 'Válida en {network}. Termina en {end}.',
  walletFixed: 'Fijada por {shop}',
  walletEmpty: 'Escribe la dirección de tu monedero.',
  walletSum: 'Parece que un carácter de esta dirección está mal. Cópiala otra vez desde tu monedero.',
  walletOther: 'Es una dirección para {others}. Has elegido {network}. Cambia la red o usa otra dirección.',
  walletContract: 'Esta es la dirección del propio {asset}, no de un monedero. Lo que se envía a ella se pierde.',
  walletDead: 'Nadie puede usar criptomonedas en esta dirección. Copia la dirección de tu propio monedero.',
  walletElse: 'Esto no es una dirección de {network}. Copia la dirección completa desde tu monedero.',
  walletRefused: 'Esta dirección no puede recibir {asset} en {network}. Copia la dirección de tu propio monedero.',
  walletName: 'Esto es un nombre, no una dirección. Copia desde tu monedero la dirección que empieza por 0x.',
  walletNameElse: 'Esto es un nombre, no una dirección. Copia la propia dirección desde tu monedero.',
  walletMismatch: 'La dirección la ha fijado {shop} y no se puede cambiar. Vuelve a cargar la página.',

  // Screen details: bank account
  iban: 'Tu IBAN',
  ibanHint: 'Puedes dejar los espacios.',
  ibanEmpty: 'Escribe el IBAN de tu cuenta.',
  ibanWrong: 'Este IBAN tiene una errata. Compáralo con la aplicación de tu banco.',
  account_holder: 'Titular de la cuenta',
  holderWrong: 'Escribe el nombre como lo escribe tu banco, de 2 a 70 caracteres.',
  optional: '{field} (opcional)',
  sort_code: 'Sort code',
  sortWrong: 'Escribe los 6 dígitos del sort code.',
  account_number: 'Número de cuenta',
  numberWrong: 'Escribe los 8 dígitos del número de cuenta.',
  numberWrongUs: 'Escribe los 4 a 17 dígitos del número de cuenta.',
  routing_number: 'Número de ruta',
  routingWrong: 'Este número de ruta tiene una errata.',
  account_type: 'Tipo de cuenta',
  checking: 'Cuenta corriente',
  savings: 'Cuenta de ahorro',

  // Methods of payment, by their id in the catalogue
  m_sepa: 'Transferencia SEPA',
  m_card: 'Tarjeta',
  m_faster_payments: 'Faster Payments',
  m_ach: 'Transferencia ACH',

  // Screen price
  priceTitle: 'Tu precio',
  onAt: 'En {network}, a {rate}',
  exchanged: 'Cambiado por {asset}',
  serviceFee: 'Comisión de servicio',
  networkFee: 'Comisión de red, {network}',
  held: 'Precio reservado. Lo renovamos por ti.',
  heldAsk: 'Precio reservado. Si cambia, te preguntamos otra vez.',
  refreshed: 'El precio se renueva solo',
  priceLoading: 'Cargando el precio…',
  says_on_ramp: 'Recibes {get}. Pagas {give}, con {fees} de comisiones incluidas.',
  says_off_ramp: 'Envías {give}. Recibes {get}, ya descontadas las comisiones de {fees}.',

  // Prices that changed or ran out
  changed: 'El precio ha cambiado.',
  less: 'Recibes {amount} menos que antes.',
  more: 'Recibes {amount} más que antes.',
  sendMore: 'Envías {amount} más que antes.',
  sendLess: 'Envías {amount} menos que antes.',
  same_on_ramp: 'Pagas lo mismo.',
  same_off_ramp: 'Recibes lo mismo.',
  same_swap: 'Envías lo mismo.',
  feesChanged: 'Las comisiones eran de {before} y ahora son de {now}.',
  rateChanged: 'El tipo de cambio era {before}. Los importes son los mismos.',
  before: 'Antes: {amount}',
  pressAgain: 'Pulsa otra vez el botón si estás de acuerdo.',
  ranOut: 'El precio ha caducado. Este es el nuevo; pulsa otra vez el botón si estás de acuerdo.',
  otherWindow: 'Parece que este pago está abierto en otra ventana. Pulsa otra vez el botón para pagar aquí.',
  outdated: 'Este precio ya no está al día.',
  showPrice: 'Ver el precio actual',

  // Screen verification
  verificationTitle: 'Confirma tu identidad',
  verificationText: 'Para este importe necesitamos saber quién eres. Las preguntas las hace nuestro socio.',
  partner: 'Empezar con nuestro socio',
  comeBack: 'Vuelve a esta página cuando termines. Continúa sola.',
  openAgain: 'Abrir otra vez',
  verificationPending: 'Estamos comprobando tus datos. Puedes dejar esta página abierta.',
  verified: 'Identidad confirmada.',
  verificationRejected:
    'No se ha podido confirmar tu identidad, así que este pago no puede continuar. ' +
    'Vuelve a {shop} para pagar de otra forma.',
  send: 'Enviar',

  // Screen confirm
  confirm_on_ramp: 'Comprobar y pagar',
  confirm_off_ramp: 'Comprobar y vender',
  confirm_swap: 'Comprobar y cambiar',
  checkAddress: '¿Es esta tu dirección? Una transferencia de cripto no se puede deshacer.',
  checkAccount: '¿Es esta tu cuenta?',
  toWallet: 'A tu monedero',
  toAccount: 'A tu cuenta',
  pay_on_ramp: 'Pagar {amount}',
  pay_off_ramp: 'Vender {amount}',
  pay_swap: 'Cambiar {amount}',
  paying: 'Pagando…',
  moment: 'Un momento…',
  nextBank: 'Después: los datos bancarios para tu transferencia.',
  nextCrypto: 'Después: la dirección a la que envías.',
  nextCard: 'Después: los datos de tu tarjeta en el proveedor de pagos.',

  // Screen instructions: bank transfer, and transfer of crypto
  bankTitle: 'Haz la transferencia',
  bankLead: 'Copia estos valores en la aplicación de tu banco.',
  mindReference: 'No olvides la referencia.',
  whyReference: 'Con ella encontramos tu pago.',
  sendTitle: 'Envía {amount}',
  sendOn: 'Envíalo por',
  sendOnce: ', en una sola transferencia.',
  scan: 'Escanea con tu monedero o copia los dos valores',
  scanBank: 'O escanea este código con la aplicación de tu banco',
  openWallet: 'Abrir en la aplicación del monedero',
  exact: 'Cantidad exacta, {asset}',
  addressOn: 'Dirección en {network}',
  qr: 'Código QR de estos valores, que también aparecen como texto',

  // Screen instructions: other ways to pay
  redirectTitle: 'Paga en tu banco o en la emisora de tu tarjeta',
  redirectText: 'Pagas en una página del proveedor de pagos.',
  openLink: 'Abrir la página de pago',
  deposit: 'Confirma la transferencia en tu monedero.',
  walletTitle: 'Confirma en tu monedero',

  // Screen instructions: waiting and copying
  waitBank: 'Esperando tu transferencia',
  waitCrypto: 'Esperando tus {asset}',
  waitPayment: 'Esperando tu pago',
  updates: 'Esta página se actualiza sola.',
  sentBank: 'Ya he hecho la transferencia',
  sentCrypto: 'Ya he enviado los {asset}',
  testAddress: 'Esto es una prueba: no envíes nada a esta dirección',
  testPayment: 'Esto es una prueba: no pagues nada. No se mueve dinero.',
  pretendSent: 'Simular el envío',
  pretendPaid: 'Simular el pago',
  copy: 'Copiar',
  copied: 'Copiado',
  copyOf: 'Copiar {field}',
  copiedOf: 'Copiado: {field}.',
  byHand: 'Pulsa Ctrl+C (⌘C) para copiar. El texto está seleccionado.',

  // Amounts that differ, and the end of the time to pay
  partArrived: 'Han llegado {received} de {required}.',
  sendRest: 'Envía los {rest} restantes de la misma forma.',
  moreArrived: 'Han llegado {received}; se pedían {required}. El proveedor de pagos devuelve la diferencia.',
  timeOver:
    'El plazo para pagar ha terminado: no envíes nada más. Si ya has pagado, espera aquí. ' +
    'El pago se completará o recibirás el dinero de vuelta.',

  // Fields of a transfer, by their name in the API
  i_account_holder: 'Titular de la cuenta',
  i_iban: 'IBAN',
  i_bic: 'BIC',
  i_reference: 'Referencia',
  i_amount: 'Importe',
  i_address: 'Dirección',
  i_memo: 'Memo (obligatorio)',

  // Screen progress
  progressTitle: 'Estamos en ello',
  progress_on_ramp: 'En cuanto llegue tu transferencia, enviamos {get} a tu monedero.',
  progressCard: 'En cuanto se confirme tu pago, enviamos {get} a tu monedero.',
  progress_off_ramp: 'En cuanto lleguen tus {asset}, enviamos {get} a tu cuenta.',
  progress_swap: 'En cuanto lleguen tus {asset}, enviamos {get} a tu monedero.',
  placed: 'Orden recibida',
  arrived: 'Llegada: {what}',
  transfer: 'Transferencia',
  payment: 'Pago',
  coinSent: 'Envío: {what}',
  money: 'Dinero',
  closePage: 'Puedes cerrar esta página. {shop} recibe el resultado en todo caso.',
  showBank: 'Ver los datos bancarios',
  showDetails: 'Ver los datos del pago',
  cancelPayment: 'Cancelar este pago',

  // Screen done
  doneSent: '{amount} enviados',
  doneMoney: '{amount} van de camino',
  doneWallet: 'De camino a tu monedero en {network}.',
  doneAccount: 'A tu cuenta {account}.',
  doneAnyAccount: 'A tu cuenta bancaria.',
  feesIncluded: 'Comisiones, incluidas',
  date: 'Fecha',
  merchant: 'Comercio',
  keepReference: 'Guarda la referencia.',
  saveReceipt: 'Guardar recibo',
  mayClose: 'Puedes cerrar esta página.',
  mayReturn: 'Puedes volver a la tienda.',
  return: 'Volver a {shop}',
  returnPlain: 'Volver a la tienda',
  close: 'Cerrar',

  // Screen failed
  declinedTitle: 'El pago ha sido rechazado',
  declinedCard: 'La emisora de la tarjeta lo ha rechazado sin dar un motivo. Inténtalo otra vez o paga de otra forma.',
  declinedBank: 'El banco lo ha rechazado sin dar un motivo. Inténtalo otra vez o paga de otra forma.',
  failedTitle: 'El pago no se ha realizado',
  failedText: 'No conocemos el motivo. Inténtalo otra vez o paga de otra forma.',
  amount_differs: 'Ha llegado un importe distinto del pedido. El proveedor de pagos lo devuelve.',
  expired: 'El dinero no ha llegado a tiempo. Si lo has enviado, el proveedor de pagos lo devuelve.',
  returned: 'El dinero se devolvió antes de que el pago se completara.',
  refused:
    'El banco, la emisora de la tarjeta o la red lo ha rechazado. El proveedor de pagos devuelve lo que ha llegado.',
  paidWith: 'Pagado con',
  triedWith: 'Intentado con',
  failedHelp: 'Si ha salido dinero de tu cuenta, no pagues otra vez. Da esta referencia a {shop}.',
  failedHelpCrypto: 'Si los {asset} han salido de tu monedero, no los envíes otra vez. Da esta referencia a {shop}.',
  retry: 'Intentar otra vez',
  otherWay: 'Elegir otra forma de pago',
  otherCoin: 'Elegir otra criptomoneda',

  // Cancelling a payment
  cancelAndBack: 'Cancelar y volver a {shop}',
  cancel: 'Cancelar',
  askCancel: '¿Cancelar este pago?',
  nothingYet: 'No se ha pagado nada.',
  askSent: '¿Ya has enviado el dinero? Entonces no canceles.',
  riskSent: 'Si has enviado el dinero, cancelar no lo devuelve.',
  keepGoing: 'Seguir',
  keepWaiting: 'Seguir esperando',
  yesCancel: 'Cancelar el pago',
  cancelling: 'Cancelando…',
  paymentCancelled: 'El pago se ha cancelado. Puedes pagar otra vez o volver a la tienda.',

  // Screen unavailable
  unavailableTitle: 'No disponible ahora mismo',
  unavailableText: 'Este pago no es posible aquí en este momento. Elige otra forma de pago en la tienda.',
  brokenLink: 'Este enlace de pago está incompleto. Ábrelo otra vez desde la tienda.',

  // Screen over
  expiredTitle: 'Este pago ha caducado',
  startAgain: 'No se ha pagado nada. Empieza de nuevo en la tienda.',
  cancelledTitle: 'Este pago se ha cancelado',
  nothingPaid: 'No se ha pagado nada.',
  closedTitle: 'Este pago está cerrado',
  closedText: 'La tienda muestra el estado de tu pedido.',
  keepAndAsk: 'Si has enviado dinero, guarda esta referencia: {reference} y pregunta a {shop}.',
  tokenTitle: 'Esta página ya no puede continuar',
  tokenText: 'Abre otra vez el pago desde la tienda. Nada se paga dos veces.',

  // Screen offline, and a payment whose result is unknown
  offlineTitle: 'No tienes conexión',
  offlineText: 'Lo intentamos de nuevo en cuanto vuelva la conexión. Nada se paga dos veces.',
  tryNow: 'Intentar ahora',
  online: 'Vuelves a tener conexión.',
  checkingTitle: 'Estamos comprobando tu pago',
  checkingText:
    'No pudimos conectar con el servicio de pago mientras pagabas. No pagues otra vez. Esta página muestra el resultado por sí sola.',

  // Buttons and alerts of several screens
  continue: 'Continuar',
  back: 'Atrás',
  noRate: 'Ahora mismo no hay precio para {asset}. Inténtalo otra vez o elige otra criptomoneda.',
  notOffered: '{asset} no se ofrece en esta red ahora mismo. Elige otra.',
  outOfRange: 'El importe de este pedido está fuera de los límites de esta opción. Elige otra.',
  limits: 'Posible: de {min} a {max}.',
  noChoice: 'Ninguna opción admite aquí el importe de este pedido.',
  tooMany: 'Ha habido demasiadas solicitudes. Lo intentamos de nuevo en {seconds} segundos.',
  tooLate: 'Es tarde para cancelar: el pago se está ejecutando.',
  unreachable: 'No hemos podido conectar con el servicio de pago. Nada se paga dos veces. Inténtalo otra vez.',
  requestId: 'Referencia: {id}',
  underWay: 'Este pago ya está en marcha.',
};
