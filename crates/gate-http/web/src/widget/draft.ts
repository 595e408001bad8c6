import { isName, readAddress } from './address';
import type { Misfit } from './address_checks';
import { isLess } from './decimals';
import type { Kept } from './flow/kept';
import { payoutFaults, type PayoutTexts } from './payout';
import type { MessageKey } from './i18n';
import type { Network, Options, Payment, Session, Side, SideOptions } from './types';

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
export const sameName = (one: string, other: string | null | undefined): boolean =>
  one.toLowerCase() === other?.toLowerCase();

/** The first choices of a side. What the user typed earlier stays. */
export function draftOf(
  side: Side,
  entry: SideOptions | undefined,
  session: Session | null,
  earlier: Draft | null,
): Draft {
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

/** What the customer typed and chose in the form. */
export function typed(draft: Draft, fields: Partial<Draft>, session: Session, entry: SideOptions | undefined): Draft {
  const next = { ...draft, ...fields };
  return consistent(
    session.wallet_address ? next : { ...next, wallet_address: readAddress(next.wallet_address) },
    entry,
  );
}

/** Keeps the choices consistent after a change: a swap has two assets, and each asset has its own networks. */
function consistent(draft: Draft, entry: SideOptions | undefined): Draft {
  const assets = entry?.assets ?? [];
  const networkOf = (symbol: string, chain: string) => {
    const networks = assets.find((one) => one.symbol === symbol)?.networks ?? [];
    return networks.some((one) => one.chain === chain) ? chain : (networks[0]?.chain ?? '');
  };
  const isTwice = draft.side === 'swap' && draft.source_asset === draft.asset;
  const source_asset = isTwice ? (assets.find((one) => one.symbol !== draft.asset)?.symbol ?? '') : draft.source_asset;
  const network = networkOf(draft.asset, draft.network);
  return { ...draft, network, source_asset, source_network: networkOf(source_asset, draft.source_network) };
}

type Chosen = Pick<Payment, 'side' | 'asset' | 'network' | 'source_asset' | 'source_network' | 'payment_method'>;

/** What was chosen and typed before a reload, as far as it is still offered. */
export function restored(draft: Draft, kept: Kept | null, session: Session, entry: SideOptions | undefined): Draft {
  if (!kept) return draft;
  const wallet_address = session.wallet_address ?? kept.draft.wallet_address;
  return typed(adopt(draft, kept.draft, entry), { wallet_address }, session, entry);
}

/** The choices of an earlier payment, as far as they are still offered. */
export function adopt(draft: Draft, payment: Chosen, entry: SideOptions | undefined): Draft {
  if (draft.side !== payment.side) return draft;
  const { asset, network, source_asset, source_network, payment_method } = payment;
  const isOffered = (symbol: string | null, chain: string | null) =>
    entry?.assets.some((one) => one.symbol === symbol && one.networks.some((network) => network.chain === chain)) ===
    true;
  const isMethod = entry?.methods.some((one) => one.id === payment_method) === true;
  const adopted = {
    ...draft,
    ...(isOffered(asset, network) ? { asset, network } : {}),
    ...(source_asset && source_network && isOffered(source_asset, source_network)
      ? { source_asset, source_network }
      : {}),
    ...(payment_method && isMethod ? { payment_method } : {}),
  };
  return consistent(adopted, entry);
}

/** What is wrong with a field: its alert's code, and the text for the user. */
export interface Fault {
  code: string;
  text: MessageKey;
  /** The networks that the address is for instead. */
  others?: string[];
  /** The asset whose own address it is. */
  asset?: string;
}

/** The form of account that the chosen payout method asks for. */
export const accountOf = (draft: Draft, entry: SideOptions | undefined) =>
  entry?.methods.find((one) => one.id === draft.payment_method)?.account;

/** The chosen network of the asset that the customer receives. */
const networkOf = (draft: Draft, entry: SideOptions | undefined): Network | undefined =>
  entry?.assets.find((one) => one.symbol === draft.asset)?.networks.find((one) => one.chain === draft.network);

/** What is known about an address on a network. */
export interface Check {
  readonly address: string;
  readonly chain: string;
  /** False until the check has ended, and if it cannot be made: then the check of the gate decides alone. */
  readonly isKnown: boolean;
  readonly misfit: Misfit | null;
}

/** The details of a payment as far as they have to fit together. */
interface Details {
  readonly draft: Draft;
  readonly session: Session;
  readonly options: Options;
  readonly check: Check | null;
}

/** The address that has to be checked, and its network. */
export function addressOf(
  { draft, session }: Details,
  entry: SideOptions | undefined,
): { address: string; network: Network } | null {
  const { wallet_address: address, side } = draft;
  const network = networkOf(draft, entry);
  return network && side !== 'off_ramp' && !session.wallet_address && address && !isName(address)
    ? { address, network }
    : null;
}

/** The check of the address that is typed now. */
export function checkOf(details: Details, entry: SideOptions | undefined): Check | null {
  const wanted = addressOf(details, entry);
  const { check } = details;
  return wanted && check?.address === wanted.address && check.chain === wanted.network.chain ? check : null;
}

/** The asset whose contract has this address on the chosen network, of all assets of the session. */
function assetAt({ draft, options }: Details): string | undefined {
  const isContract = ({ chain, evm, contract_address: contract }: Network) =>
    chain === draft.network &&
    contract !== null &&
    (evm ? sameName(contract, draft.wallet_address) : contract === draft.wallet_address);
  return options.sides.flatMap(({ assets }) => assets).find(({ networks }) => networks.some(isContract))?.symbol;
}

function addressFault(details: Details, entry: SideOptions | undefined): Fault | null {
  const { draft, session } = details;
  const address = draft.wallet_address;
  if (session.wallet_address) return null;
  if (isName(address))
    return { code: 'wallet_address_is_a_name', text: networkOf(draft, entry)?.evm ? 'walletName' : 'walletNameElse' };
  const code = 'invalid_address';
  if (!address) return { code, text: 'walletEmpty' };
  const asset = assetAt(details);
  if (asset) return { code, text: 'walletContract', asset };
  const misfit = checkOf(details, entry)?.misfit;
  if (!misfit) return null;
  if (typeof misfit === 'object') return { code, text: 'walletOther', others: misfit.others };
  return { code, text: MISFITS[misfit] };
}

const MISFITS: Record<Extract<Misfit, string>, MessageKey> = {
  sum: 'walletSum',
  dead: 'walletDead',
  else: 'walletElse',
};

/** What is wrong with each field that needs attention, by the name of the field. */
export type Faults = Partial<Record<string, Fault>>;

/** Checks the details. */
export function faultsOf(details: Details, entry: SideOptions | undefined): Faults {
  const { draft } = details;
  if (draft.side === 'off_ramp') {
    return Object.fromEntries(
      payoutFaults(accountOf(draft, entry), draft).map(([name, text]) => [name, { code: `invalid_${name}`, text }]),
    );
  }
  const fault = addressFault(details, entry);
  return fault ? { wallet_address: fault } : {};
}

/** The amounts that an offer takes. */
export interface Limits {
  readonly min: string;
  readonly max: string;
  readonly currency: string;
}

/**
 * The limits that exclude the amount of the session: those of one asset, or of all assets together if each of them excludes it. Null if an
 * asset takes the amount, or says nothing about this currency.
 */
export function limitsMisfit(
  entry: SideOptions | undefined,
  { amount, currency }: Session,
  asset?: string,
): Limits | null {
  const assets = (entry?.assets ?? []).filter(({ symbol }) => asset === undefined || symbol === asset);
  const limits = assets.flatMap(({ limits: one }) =>
    one?.currency === currency && (isLess(amount, one.min_amount) || isLess(one.max_amount, amount)) ? [one] : [],
  );
  const [first] = limits;
  if (!first || limits.length < assets.length) return null;
  const min = limits.map((one) => one.min_amount).reduce((least, one) => (isLess(one, least) ? one : least));
  const max = limits.map((one) => one.max_amount).reduce((most, one) => (isLess(most, one) ? one : most));
  const isBetween = !isLess(amount, min) && !isLess(max, amount);
  // An amount between the limits of two assets is within the limits of all together.
  return isBetween ? { min: first.min_amount, max: first.max_amount, currency } : { min, max, currency };
}
