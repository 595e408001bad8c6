import type { Session, Side, SideOptions } from './types';

/** What the user chooses before a payment. */
export interface Draft {
  side: Side;
  asset: string;
  network: string;
  payment_method: string;
  source_asset: string;
  source_network: string;
  wallet_address: string;
  payout: Record<string, string>;
}

/** A session names its targets in upper case, and the catalogue names networks in lower case. */
export const sameName = (one: string, other: string | null | undefined): boolean => one.toLowerCase() === other?.toLowerCase();

/** The first choices of a side. What the user typed earlier stays. */
export function draftOf(side: Side, entry: SideOptions | undefined, session: Session | null, earlier: Draft | null): Draft {
  const asset = entry?.assets.find((one) => sameName(one.symbol, session?.target_token)) ?? entry?.assets[0];
  const source = entry?.assets.find((one) => one.symbol !== asset?.symbol);
  const network = asset?.networks.find((one) => sameName(one.chain, session?.target_network)) ?? asset?.networks[0];
  return {
    side,
    asset: asset?.symbol ?? '',
    network: network?.chain ?? '',
    payment_method: entry?.methods[0]?.id ?? '',
    source_asset: source?.symbol ?? '',
    source_network: source?.networks[0]?.chain ?? '',
    wallet_address: session?.wallet_address ?? earlier?.wallet_address ?? '',
    payout: earlier?.payout ?? {},
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
