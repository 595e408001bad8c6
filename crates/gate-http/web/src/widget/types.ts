/** Shapes of the widget API, as far as the widget reads them. */

import type { Account } from './payout';

export type Side = 'on_ramp' | 'off_ramp' | 'swap';

export interface Branding {
  logo_url?: string | null;
  primary_color?: string | null;
  secondary_color?: string | null;
  accent_color?: string | null;
  brand_name?: string | null;
}

export interface Fees {
  total: string;
  service: string;
  network: string;
  currency: string;
}

export interface Verification {
  status: 'not_required' | 'required' | 'pending' | 'approved' | 'rejected';
  reason: string | null;
}

export interface Priced {
  side: Side;
  asset: string;
  network: string;
  payment_method: string | null;
  source_asset: string | null;
  source_network: string | null;
  source_amount: string | null;
  fiat_amount: string;
  crypto_amount: string;
  exchange_rate: string;
  fees: Fees;
}

/** What has arrived of a payment. */
export interface Received {
  amount: string;
  required: string;
  currency: string | null;
  asset: string | null;
  network: string | null;
  at: string;
}

export interface Payment extends Priced {
  id: string;
  status: 'processing' | 'completed' | 'failed' | 'cancelled';
  instructions: Record<string, string> | null;
  pay_until: string | null;
  received: Received | null;
  failure_code: string | null;
  failure_reason: 'amount_differs' | 'expired' | 'returned' | 'refused' | null;
  failure_message: string | null;
  tx_refid: string | null;
  created_at: string;
}

export interface Quote extends Priced {
  id: string;
  currency: string;
  created_at: string;
  expires_at: string;
}

export interface Session {
  id: string;
  mode: 'test' | 'live';
  status: 'open' | 'completed' | 'expired' | 'cancelled';
  amount: string;
  currency: string;
  flow: Side | null;
  target_token: string | null;
  target_network: string | null;
  wallet_address: string | null;
  return_url: string | null;
  cancel_url: string | null;
  expires_at: string;
  server_time: string;
  branding: Branding;
  verification: Verification;
  payment: Payment | null;
  version: string;
}

export interface Network {
  chain: string;
  evm: boolean;
}

export interface Asset {
  symbol: string;
  name: string;
  networks: Network[];
  limits: { currency: string; min_amount: string; max_amount: string } | null;
}

/** A price for one asset by one method, on the first of the asset's networks. */
export interface Indicative {
  asset: string;
  payment_method: string;
  crypto_amount: string;
  fiat_amount: string;
  fees: Fees;
}

export interface SideOptions {
  side: Side;
  assets: Asset[];
  methods: { id: string; name: string; currency: string; account?: Account | null }[];
  indicative: Indicative[];
}

export interface Options {
  sides: SideOptions[];
}

export interface FormField {
  title?: string;
  type?: string;
  enum?: string[];
  format?: string;
  maxLength?: number;
}

export interface VerificationTask {
  status: Verification['status'];
  url: string | null;
  form: { properties: Record<string, FormField>; required?: string[] } | null;
  reason: string | null;
}

export interface EmbedToken {
  embed_token: string;
  available?: boolean;
  unavailable_reason?: string | null;
  session_id?: string | null;
}
