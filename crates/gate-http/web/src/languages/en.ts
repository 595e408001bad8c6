/** Texts of the SDK around the widget's frame. */
export const frame = {
  title: 'Secure checkout',
  loading: 'Loading…',
};

/** Texts of the widget's page without its scripts. */
export const page = {
  noscript: 'This checkout needs JavaScript. Please go back to the shop.',
};

/** Texts of the widget. Each may name the `{shop}`. */
export const messages = {
  // Page: its title, and what is above and below each screen
  title: 'Checkout',
  docTitle: '{title} – {shop}',
  docTest: 'Test: {title} – {shop}',
  testMode: 'Test mode',
  testNote: ': no real money moves',
  powered: 'Powered by',
  licences: 'Licences',
  shopName: 'Shop',

  // Progress bar, and waiting for the gate
  stepOf: 'Step {step} of 4',
  loading: 'Loading…',
  longer: 'This takes longer than usual. Please leave the page open.',

  // Kinds of payment, and the names of amounts
  on_ramp: 'Buy',
  off_ramp: 'Sell',
  swap: 'Swap',
  worth: 'Worth',
  youPay: 'You pay',
  youReceive: 'You receive',
  youSend: 'You send',
  youPaid: 'You paid',
  youReceived: 'You received',
  toPay: 'To pay',
  rate: 'Rate',
  payBefore: 'Pay before',

  // Screen choose: kinds of payment
  chooseTitle: 'What would you like to do?',
  choose_on_ramp: 'Buy crypto',
  choose_off_ramp: 'Sell crypto',
  choose_swap: 'Swap crypto',
  kinds: 'What you want to do',
  selected: '{side} selected.',

  // Screen choose: what happens, and what the customer needs
  payAmount: 'You pay {amount}',
  byMethods: 'By {methods}',
  receiveThis: 'You receive {amount}',
  aboutToday: 'About {amount} today. You see every fee before you pay.',
  everyFee: 'You see every fee before you pay.',
  needWallet: 'You need a wallet address',
  anyWallet: 'From any wallet app or exchange account of yours',
  sendFromWallet: 'You send crypto from your wallet',
  needIban: 'You need your IBAN',
  needAccount: 'You need your bank details',
  sendOne: 'You send one coin',
  receiveAnother: 'You receive another, worth about {amount}',
  needWalletNew: 'You need a wallet address for the new coin',

  // Screen details: coin, network and method
  details_on_ramp: 'Your purchase',
  details_off_ramp: 'Your sale',
  details_swap: 'Your swap',
  asset_on_ramp: 'You buy',
  asset_off_ramp: 'You sell',
  network: 'Network',
  onNetwork: 'On network',
  method: 'Pay with',
  payoutMethod: 'Receive by',
  approx: '≈ {amount}',
  feesAre: 'Fees {amount}',

  // Screen details: address of the wallet
  wallet: 'Your wallet address',
  walletHint: 'Check that this wallet takes {asset} on {network}.',
  walletOk: 'Valid on {network}. It ends in {end}.',
  walletFixed: 'Set by {shop}',
  walletEmpty: 'Enter the address of your wallet.',
  walletSum: 'One character of this address seems to be wrong. Copy it again from your wallet.',
  walletOther:
    'This looks like an address of {other}. You chose {network}. Change the network, or use another address.',
  walletElse: 'This is not an address on {network}. Copy the whole address from your wallet.',
  walletName: 'This is a name, not an address. Copy the address that begins with 0x from your wallet.',
  walletNameElse: 'This is a name, not an address. Copy the address itself from your wallet.',
  walletMismatch: 'The address was set by {shop} and cannot be changed. Please reload the page.',

  // Screen details: bank account
  iban: 'Your IBAN',
  ibanHint: 'Spaces are fine.',
  ibanEmpty: 'Enter the IBAN of your account.',
  ibanWrong: 'This IBAN has a typing error. Compare it with your bank’s app.',
  account_holder: 'Account holder',
  holderWrong: 'Enter the name as your bank writes it, 2 to 70 characters.',
  optional: '{field} (optional)',
  sort_code: 'Sort code',
  sortWrong: 'Enter the 6 digits of the sort code.',
  account_number: 'Account number',
  numberWrong: 'Enter the 8 digits of the account number.',
  numberWrongUs: 'Enter the 4 to 17 digits of the account number.',
  routing_number: 'Routing number',
  routingWrong: 'This routing number has a typing error.',
  account_type: 'Account type',
  checking: 'Checking account',
  savings: 'Savings account',

  // Methods of payment, by their id in the catalogue
  m_sepa: 'SEPA transfer',
  m_card: 'Card',
  m_faster_payments: 'Faster Payments',
  m_ach: 'ACH transfer',

  // Screen price
  priceTitle: 'Your price',
  onAt: 'On {network}, at {rate}',
  exchanged: 'Exchanged for {asset}',
  serviceFee: 'Service fee',
  networkFee: 'Network fee, {network}',
  held: 'Price held. We refresh it for you.',
  heldAsk: 'Price held. If it changes, we ask you again.',
  refreshed: 'The price is refreshed by itself',
  priceLoading: 'Loading price…',
  says_on_ramp: 'You receive {get}. You pay {give}, fees of {fees} included.',
  says_off_ramp: 'You send {give}. You receive {get}, fees of {fees} already taken off.',

  // Prices that changed or ran out
  changed: 'The price has changed.',
  less: 'You receive {amount} less than before.',
  more: 'You receive {amount} more than before.',
  sendMore: 'You send {amount} more than before.',
  sendLess: 'You send {amount} less than before.',
  same_on_ramp: 'What you pay is the same.',
  same_off_ramp: 'What you receive is the same.',
  same_swap: 'What you send is the same.',
  feesChanged: 'The fees were {before}, and now they are {now}.',
  rateChanged: 'The rate was {before}. The amounts are the same.',
  before: 'Before: {amount}',
  pressAgain: 'Press the button again if you agree.',
  ranOut: 'The price ran out. This is the new one; press the button again if you agree.',
  outdated: 'This price is out of date.',
  showPrice: 'Show the current price',

  // Screen verification
  verificationTitle: 'Confirm your identity',
  verificationText: 'For this amount we need to know who you are. Our partner asks the questions.',
  partner: 'Start at our partner',
  comeBack: 'Come back to this page when you are done. It goes on by itself.',
  openAgain: 'Open it again',
  verificationPending: 'Your details are being checked. You can leave this page open.',
  verified: 'Identity confirmed.',
  verificationRejected:
    'Your identity could not be confirmed, so this payment cannot go on. Go back to {shop} for another way to pay.',
  send: 'Send',

  // Screen confirm
  confirm_on_ramp: 'Check and pay',
  confirm_off_ramp: 'Check and sell',
  confirm_swap: 'Check and swap',
  checkAddress: 'Is this your address? A crypto transfer cannot be undone.',
  checkAccount: 'Is this your account?',
  toWallet: 'To your wallet',
  toAccount: 'To your account',
  pay_on_ramp: 'Pay {amount}',
  pay_off_ramp: 'Sell {amount}',
  pay_swap: 'Swap {amount}',
  paying: 'Paying…',
  moment: 'One moment…',
  nextBank: 'Next: the bank details for your transfer.',
  nextCrypto: 'Next: the address to send to.',
  nextCard: 'Next: your card details at the payment provider.',

  // Screen instructions: bank transfer, and transfer of crypto
  bankTitle: 'Send your transfer',
  bankLead: 'Copy these values into your bank’s app.',
  mindReference: 'Do not forget the reference.',
  whyReference: 'We find your payment by it.',
  sendTitle: 'Send {amount}',
  sendOn: 'Send it on',
  sendOnce: ', in one transfer.',
  scan: 'Scan with your wallet, or copy both values',
  exact: 'Exact amount, {asset}',
  addressOn: 'Address on {network}',
  qr: 'QR code of the address, also shown below',

  // Screen instructions: other ways to pay
  redirectTitle: 'Pay at your bank or card company',
  redirectText: 'You pay on a page of the payment provider.',
  openLink: 'Open the payment page',
  sandboxTitle: 'Nothing to send',
  sandboxText: 'This is a test. Nothing needs to be sent.',
  deposit: 'Confirm the transfer in your wallet.',
  walletTitle: 'Confirm in your wallet',

  // Screen instructions: waiting and copying
  waitBank: 'Waiting for your transfer',
  waitCrypto: 'Waiting for your {asset}',
  waitPayment: 'Waiting for your payment',
  updates: 'This page updates by itself.',
  sentBank: 'I have sent the transfer',
  sentCrypto: 'I have sent the {asset}',
  copy: 'Copy',
  copied: 'Copied',
  copyOf: 'Copy {field}',
  copiedOf: 'Copied: {field}.',
  byHand: 'Press Ctrl+C (⌘C) to copy. The text is selected.',

  // Amounts that differ, and the end of the time to pay
  partArrived: '{received} of {required} have arrived.',
  sendRest: 'Send the remaining {rest} in the same way.',
  moreArrived: '{received} have arrived; {required} were asked for. The payment provider gives back the difference.',
  timeOver:
    'The time to pay is over: please send nothing now. If you have paid already, wait here. ' +
    'The payment still completes, or the money is given back.',

  // Fields of a transfer, by their name in the API
  i_account_holder: 'Account holder',
  i_iban: 'IBAN',
  i_bic: 'BIC',
  i_reference: 'Reference',
  i_amount: 'Amount',
  i_address: 'Address',
  i_memo: 'Memo (required)',

  // Screen progress
  progressTitle: 'We are on it',
  progress_on_ramp: 'As soon as your transfer arrives, we send {get} to your wallet.',
  progressCard: 'As soon as your payment is confirmed, we send {get} to your wallet.',
  progress_off_ramp: 'As soon as your {asset} arrives, we send {get} to your account.',
  progress_swap: 'As soon as your {asset} arrives, we send {get} to your wallet.',
  placed: 'Order placed',
  arrived: '{what} received',
  transfer: 'Transfer',
  payment: 'Payment',
  coinSent: '{what} sent',
  money: 'Money',
  closePage: 'You can close this page. {shop} gets the result in any case.',
  showBank: 'Show the bank details',
  showDetails: 'Show the payment details',
  cancelPayment: 'Cancel this payment',

  // Screen done
  doneSent: '{amount} sent',
  doneMoney: '{amount} on its way to you',
  doneWallet: 'It is on its way to your wallet on {network}.',
  doneAccount: 'To your account {account}.',
  doneAnyAccount: 'To your bank account.',
  feesIncluded: 'Fees, included',
  date: 'Date',
  keepReference: 'Keep the reference. You can close this page.',
  mayClose: 'You can close this page.',
  return: 'Back to {shop}',
  close: 'Close',

  // Screen failed
  declinedTitle: 'The payment was declined',
  declinedCard: 'The card company declined it and gave no reason. Try again, or choose another way to pay.',
  declinedBank: 'The bank declined it and gave no reason. Try again, or choose another way to pay.',
  failedTitle: 'The payment did not go through',
  failedText: 'We do not know the reason. Try again, or choose another way to pay.',
  amount_differs: 'Another amount arrived than was asked for. The payment provider gives it back.',
  expired: 'The money did not arrive in time. If you have sent it, the payment provider gives it back.',
  returned: 'The money was sent back before the payment was complete.',
  refused: 'The bank, the card company or the network refused it. The payment provider gives back what has arrived.',
  paidWith: 'Paid with',
  failedHelp: 'If money has left your account, do not pay again. Give {shop} this reference.',
  failedHelpCrypto: 'If the {asset} has left your wallet, do not send it again. Give {shop} this reference.',
  retry: 'Try again',
  otherWay: 'Choose another way to pay',

  // Cancelling a payment
  cancelAndBack: 'Cancel and go back to {shop}',
  cancel: 'Cancel',
  askCancel: 'Cancel this payment?',
  nothingYet: 'Nothing has been paid.',
  keepGoing: 'Keep going',
  yesCancel: 'Cancel payment',
  cancelling: 'Cancelling…',
  paymentCancelled: 'The payment was cancelled. You can pay again, or go back to the shop.',

  // Screen unavailable
  unavailableTitle: 'Not available right now',
  unavailableText: '{shop} cannot take this payment here at the moment. Please choose another way to pay in the shop.',
  brokenLink: 'This payment link is not complete. Open it again from the shop.',

  // Screen over
  expiredTitle: 'This payment has expired',
  startAgain: 'Nothing was paid. Start again in the shop.',
  cancelledTitle: 'This payment was cancelled',
  nothingPaid: 'Nothing was paid.',
  closedTitle: 'This payment is closed',
  closedText: '{shop} shows the state of your order.',
  keepAndAsk: 'If you have sent money, keep this reference: {reference} and ask {shop}.',
  tokenTitle: 'This page can no longer go on',
  tokenText: 'Open the payment again from {shop}. Nothing is paid twice.',

  // Screen offline, and a payment whose result is unknown
  offlineTitle: 'You are offline',
  offlineText: 'We try again as soon as your connection is back. Nothing is paid twice.',
  tryNow: 'Try now',
  online: 'You are online again.',
  checkingTitle: 'We are checking your payment',
  checkingText:
    'Your connection broke while you were paying. Please do not pay again. This page shows the result by itself.',

  // Buttons and alerts of several screens
  continue: 'Continue',
  back: 'Back',
  noRate: 'There is no price for {asset} at the moment. Try again, or choose another coin.',
  notOffered: '{asset} is not offered on this network at the moment. Choose another.',
  outOfRange: 'The amount of this order is outside the limits of this choice. Choose another.',
  tooMany: 'There were too many requests. We try again in {seconds} seconds.',
  tooLate: 'It is too late to cancel: the payment is being carried out.',
  unreachable: 'We could not reach the payment service. Nothing is paid twice. Try again.',
  requestId: 'Reference: {id}',
  underWay: 'This payment is already under way.',
};
