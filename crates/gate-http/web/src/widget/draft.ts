import { isName, misfitOf } from './address';
import { payoutFaults, type PayoutTexts } from './payout';
import type { MessageKey } from './i18n';
import type { Payment, Session, Side, SideOptions } from './types';

/** What the user chooses and types before a payment. Each field of the form has the name of its member. */
export interface Draft extends PayoutTexts {
  side: Side;
  asset: string;
  network: string;
  payment_method: string;
  source_asset: string;
  source_network: string;
  wallet_address: string;
}

/** A session names its targets in upper case, and the catalogue names networks in lower case. */
export const sameName = (one: string, other: string | null | undefined): boolean => one.toLowerCase() === other?.toLowerCase();

/** The first choices of a side. What the user typed earlier stays. */
export function draftOf(side: Side, entry: SideOptions | undefined, session: Session | null, earlier: Draft | null): Draft {
  const asset = entry?.assets.find((one) => sameName(one.symbol, session?.target_token)) ?? entry?.assets[0];
  const source = entry?.assets.find((one) => one.symbol !== asset?.symbol);
  const network = asset?.networks.find((one) => sameName(one.chain, session?.target_network)) ?? asset?.networks[0];
  return {
    ...earlier,
    side,
    asset: asset?.symbol ?? '',
    network: network?.chain ?? '',
    payment_method: entry?.methods[0]?.id ?? '',
    source_asset: source?.symbol ?? '',
    source_network: source?.networks[0]?.chain ?? '',
    wallet_address: session?.wallet_address ?? earlier?.wallet_address ?? '',
  };
}

/** Keeps the choices consistent after a change: a swap has two assets, and each asset has its own networks. */
export function mend(draft: Draft, entry: SideOptions | undefined): void {
  const networksOf = (symbol: string) => entry?.assets.find((one) => one.symbol === symbol)?.networks ?? [];
  if (draft.side === 'swap' && draft.source_asset === draft.asset) {
    draft.source_asset = entry?.assets.find((one) => one.symbol !== draft.asset)?.symbol ?? '';
  }
  if (!networksOf(draft.asset).some((one) => one.chain === draft.network)) {
    draft.network = networksOf(draft.asset)[0]?.chain ?? '';
  }
  if (!networksOf(draft.source_asset).some((one) => one.chain === draft.source_network)) {
    draft.source_network = networksOf(draft.source_asset)[0]?.chain ?? '';
  }
}

/** The choices of an earlier payment, as far as they are still offered. */
export function adopt(draft: Draft, payment: Payment, entry: SideOptions | undefined): void {
  if (draft.side !== payment.side) return;
  const isOffered = (symbol: string | null, chain: string | null) =>
    entry?.assets.some((one) => one.symbol === symbol && one.networks.some((network) => network.chain === chain)) === true;
  if (isOffered(payment.asset, payment.network)) Object.assign(draft, { asset: payment.asset, network: payment.network });
  if (isOffered(payment.source_asset, payment.source_network)) Object.assign(draft, { source_asset: payment.source_asset, source_network: payment.source_network });
  if (entry?.methods.some((one) => one.id === payment.payment_method)) draft.payment_method = payment.payment_method ?? '';
  mend(draft, entry);
}

/** What is wrong with a field: its alert's code, and the text for the user. */
export interface Fault {
  code: string;
  text: MessageKey;
  /** The network that the address fits instead. */
  other?: string;
}

/** The form of account that the chosen payout method asks for. */
export const accountOf = (draft: Draft, entry: SideOptions | undefined) => entry?.methods.find((one) => one.id === draft.payment_method)?.account;

/** The chosen network of the asset that the user receives. */
const chainOf = (draft: Draft, entry: SideOptions | undefined) =>
  entry?.assets.find((one) => one.symbol === draft.asset)?.networks.find((one) => one.chain === draft.network);

function addressFault(draft: Draft, entry: SideOptions | undefined): Fault | null {
  const address = draft.wallet_address;
  const chain = chainOf(draft, entry);
  if (isName(address)) return { code: 'wallet_address_is_a_name', text: chain?.evm ? 'walletName' : 'walletNameElse' };
  const code = 'invalid_address';
  if (!address) return { code, text: 'walletEmpty' };
  const misfit = chain && misfitOf(address, chain, entry?.assets.flatMap((one) => one.networks) ?? []);
  if (!misfit) return null;
  if (typeof misfit === 'object') return { code, text: 'walletOther', other: misfit.other };
  return { code, text: misfit === 'sum' ? 'walletSum' : 'walletElse' };
}

/** Checks the details and returns what is wrong with each field that needs attention. */
export function faultsOf(draft: Draft | null, session: Session | null, entry: SideOptions | undefined): Record<string, Fault> {
  if (!draft) return {};
  if (draft.side === 'off_ramp') {
    return Object.fromEntries(payoutFaults(accountOf(draft, entry), draft).map(([name, text]) => [name, { code: `invalid_${name}`, text }]));
  }
  const fault = session?.wallet_address ? null : addressFault(draft, entry);
  return fault ? { wallet_address: fault } : {};
}
