import { useEffect, useRef, useState } from 'preact/hooks';
import { addressFits, isName, readAddress } from './address';
import type { ScreenProps } from './app';
import { sameName } from './draft';
import type { Flow } from './flow';
import { crypto, methodName, money, networkName, t, type MessageKey } from './i18n';
import { Amount, Button } from './parts';
import { ACCOUNT_TYPES, payoutFaults, payoutFields } from './payout';
import type { Priced, Quote } from './types';

interface SelectProps {
  name: string;
  label: string;
  value: string;
  choices: [string, string][];
  onPick: (value: string) => void;
}

function Select({ name, label, value, choices, onPick }: SelectProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <select name={name} value={value} onChange={(event) => onPick(event.currentTarget.value)}>
        {choices.map(([id, text]) => <option key={id} value={id} selected={id === value}>{text}</option>)}
      </select>
    </label>
  );
}

/** What is wrong with a field: a code of the page, and the text for the user. */
interface Fault {
  code: string;
  text: string;
}

/** The property `autocorrect` is a boolean in some browsers and absent in others. The attribute means the same in all. */
const neverCorrect = (field: HTMLInputElement | null) => field?.setAttribute('autocorrect', 'off');

interface InputProps {
  name: string;
  label: string;
  value: string;
  hint?: string | undefined;
  error?: Fault | undefined;
  readOnly?: boolean;
  onType: (value: string) => void;
}

function Input({ name, label, value, hint, error, readOnly, onType }: InputProps) {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <input id={name} name={name} value={value} readOnly={readOnly === true} autocomplete={name === 'account_holder' ? 'name' : 'off'} autocapitalize="none" ref={neverCorrect} spellcheck={false} aria-invalid={error !== undefined} aria-describedby={hint || error ? `${name}-text` : undefined} onInput={(event) => onType(event.currentTarget.value)} />
      {error ? <p class="alert" role="alert" data-code={error.code} id={`${name}-text`}>{error.text}</p> : hint && <p class="hint" id={`${name}-text`}>{hint}</p>}
    </div>
  );
}

/** Checks the details and returns what is wrong with each field that needs attention. */
function problems(flow: Flow): Record<string, Fault> {
  const { draft, session, sideOptions } = flow;
  if (!draft) return {};
  if (draft.side === 'off_ramp') {
    const found = payoutFaults(accountOf(flow), draft.payout);
    return Object.fromEntries(found.map(([name, key]) => [name, { code: `invalid_${name}`, text: t(key) }]));
  }
  const { wallet_address: address } = draft;
  if (session?.wallet_address) return {};
  if (isName(address)) return { wallet_address: { code: 'wallet_address_is_a_name', text: t('walletName') } };
  const chain = sideOptions?.assets.find((one) => one.symbol === draft.asset)?.networks.find((one) => one.chain === draft.network);
  const text = !address ? t('required') : chain && !addressFits(address, chain.chain, chain.evm) ? t('walletWarning', { network: networkName(chain.chain) }) : null;
  return text === null ? {} : { wallet_address: { code: 'invalid_address', text } };
}

/** The form of account that the chosen payout method asks for. */
const accountOf = (flow: Flow) => flow.sideOptions?.methods.find((one) => one.id === flow.draft?.payment_method)?.account;

/** Takes the texts from the form itself, because autofill can set a value without an event. */
function readForm(flow: Flow, form: HTMLFormElement): void {
  const { draft, session } = flow;
  if (!draft) return;
  const values = new FormData(form);
  const payout = { ...draft.payout };
  for (const name of payoutFields(accountOf(flow))) {
    const value = values.get(name);
    if (typeof value === 'string') payout[name] = value;
  }
  const address = values.get('wallet_address');
  const isOwn = typeof address === 'string' && !session?.wallet_address;
  flow.edit({ payout, ...(isOwn ? { wallet_address: readAddress(address) } : {}) });
}

function PayoutFields({ flow, errors }: ScreenProps & { errors: Record<string, Fault> }) {
  const { draft } = flow;
  if (!draft) return null;
  const change = (name: string, value: string) => flow.edit({ payout: { ...draft.payout, [name]: value } });
  return (
    <>
      {payoutFields(accountOf(flow)).map((name) => {
        const value = draft.payout[name] ?? '';
        if (name === 'account_type') {
          const choices = ACCOUNT_TYPES.map((one): [string, string] => [one, t(one)]);
          return <Select key={name} name={name} label={t(name)} value={value || ACCOUNT_TYPES[0]} choices={choices} onPick={(picked) => change(name, picked)} />;
        }
        const label = name === 'account_holder' ? t('optional', { field: t(name) }) : t(name);
        return <Input key={name} name={name} label={label} value={value} error={errors[name]} onType={(typed) => change(name, typed)} />;
      })}
    </>
  );
}

export function Details({ flow }: ScreenProps) {
  const [asked, setAsked] = useState(false);
  const { draft, session, sideOptions } = flow;
  if (!draft || !sideOptions) return null;
  const errors = asked ? problems(flow) : {};
  const { side } = draft;
  const assets = sideOptions.assets.map((one): [string, string] => [one.symbol, one.name === one.symbol ? one.symbol : `${one.name} (${one.symbol})`]);
  const networks = (symbol: string) => (sideOptions.assets.find((one) => one.symbol === symbol)?.networks ?? []).map((one): [string, string] => [one.chain, networkName(one.chain)]);
  const only = (choices: [string, string][], fixed: string | null | undefined) => (side !== 'off_ramp' && fixed ? choices.filter(([id]) => sameName(id, fixed)) : choices);
  const submit = (event: Event) => {
    event.preventDefault();
    readForm(flow, event.currentTarget as HTMLFormElement);
    const [first] = Object.keys(problems(flow));
    setAsked(true);
    if (first) document.getElementById(first)?.focus();
    else void flow.next();
  };
  return (
    <form onSubmit={submit} noValidate>
      {side === 'swap' && (
        <div class="pair">
          <Select name="source_asset" label={t('sourceAsset')} value={draft.source_asset} choices={assets.filter(([id]) => id !== draft.asset)} onPick={(value) => flow.edit({ source_asset: value })} />
          <Select name="source_network" label={t('sourceNetwork')} value={draft.source_network} choices={networks(draft.source_asset)} onPick={(value) => flow.edit({ source_network: value })} />
        </div>
      )}
      <div class="pair">
        <Select name="asset" label={t(side === 'swap' ? 'youReceive' : 'asset')} value={draft.asset} choices={only(assets, session?.target_token)} onPick={(value) => flow.edit({ asset: value })} />
        <Select name="network" label={t('network')} value={draft.network} choices={only(networks(draft.asset), session?.target_network)} onPick={(value) => flow.edit({ network: value })} />
      </div>
      {side !== 'swap' && (
        <Select name="payment_method" label={t(side === 'off_ramp' ? 'payoutMethod' : 'method')} value={draft.payment_method} choices={sideOptions.methods.map((one): [string, string] => [one.id, methodName(one)])} onPick={(value) => flow.edit({ payment_method: value })} />
      )}
      {side !== 'off_ramp' && (
        <Input name="wallet_address" label={t('wallet')} value={draft.wallet_address} readOnly={Boolean(session?.wallet_address)} hint={t(session?.wallet_address ? 'walletFixed' : 'walletHint')} error={errors['wallet_address']} onType={(value) => flow.edit({ wallet_address: value })} />
      )}
      {side === 'off_ramp' && <PayoutFields flow={flow} errors={errors} />}
      <Button action="continue" flow={flow} submit />
      <Button action="back" flow={flow} />
    </form>
  );
}

/** What the user gives and what the user gets, as texts with their exact values. */
export function sums(priced: Priced, currency: string): { give: [string, string]; get: [string, string] } {
  const fiat: [string, string] = [priced.fiat_amount, money(priced.fiat_amount, currency)];
  const coins: [string, string] = [priced.crypto_amount, crypto(priced.crypto_amount, priced.asset)];
  if (priced.side === 'swap') {
    const source = priced.source_amount ?? '';
    return { give: [source, crypto(source, priced.source_asset ?? '')], get: coins };
  }
  return priced.side === 'on_ramp' ? { give: fiat, get: coins } : { give: coins, get: fiat };
}

/** What changed between two prices: the amounts, or else the fees, or else the rate. */
function changes(before: Quote, now: Quote): [string, string] {
  const views = [
    (one: Quote) => {
      const { give, get } = sums(one, one.currency);
      return one.side === 'swap' ? `${give[1]} → ${get[1]}` : one.side === 'on_ramp' ? get[1] : give[1];
    },
    (one: Quote) => `${t('totalFees')} ${money(one.fees.total, one.fees.currency)}`,
    (one: Quote) => rateOf(one),
  ];
  const view = views.find((show) => show(before) !== show(now)) ?? rateOf;
  return [view(before), view(now)];
}

function Changed({ flow }: ScreenProps) {
  const { before, quote } = flow;
  const note = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    // A key that is pressed for the old price must not accept the new one.
    if (document.activeElement?.matches('[data-action="pay"]')) note.current?.focus();
  }, [before, quote]);
  if (!before || !quote) return null;
  const [old, now] = changes(before, quote);
  return <p class="notice" id="changed" ref={note} tabIndex={-1} role="alert" data-code="price_changed">{t('priceChanged', { before: old, now })}</p>;
}

function Countdown({ flow }: ScreenProps) {
  const left = flow.secondsLeft;
  return (
    <p class="countdown">
      {left > 0 ? t('priceHolds', { seconds: String(left) }) : t('priceUpdating')}
      <progress max={60} value={left} aria-hidden="true" />
    </p>
  );
}

export function Sums({ priced, currency }: { priced: Priced; currency: string }) {
  const { give, get } = sums(priced, currency);
  return (
    <dl class="sums">
      <div><dt>{t(priced.side === 'on_ramp' ? 'youPay' : 'youSend')}</dt><dd><Amount value={give[0]}>{give[1]}</Amount></dd></div>
      <div class="big"><dt>{t('youReceive')}</dt><dd><Amount value={get[0]}>{get[1]}</Amount></dd></div>
    </dl>
  );
}

/** The exchange rate is output per input: crypto per fiat on a purchase, fiat per crypto on a sale, target per source on a swap. */
function rateOf({ side, asset, source_asset: source, currency, exchange_rate: rate }: Quote): string {
  if (side === 'swap') return `1 ${source} = ${crypto(rate, asset)}`;
  return side === 'on_ramp' ? `${money('1', currency)} = ${crypto(rate, asset)}` : `1 ${asset} = ${money(rate, currency, 10)}`;
}

export function Price({ flow }: ScreenProps) {
  const { quote } = flow;
  if (!quote) {
    return (
      <>
        {flow.busy && <div class="ghost" role="status">{t('priceUpdating')}</div>}
        {!flow.busy && <Button action="continue" flow={flow} label={t('retry')} />}
        <Button action="back" flow={flow} />
      </>
    );
  }
  const { fees } = quote;
  const row = (key: MessageKey, value: string) => <div><dt>{t(key)}</dt><dd><Amount value={value}>{money(value, fees.currency)}</Amount></dd></div>;
  return (
    <>
      <Changed flow={flow} />
      <Sums priced={quote} currency={quote.currency} />
      <dl class="rows">
        <div><dt>{t('rate')}</dt><dd><Amount value={quote.exchange_rate}>{rateOf(quote)}</Amount></dd></div>
        {row('serviceFee', fees.service)}
        {row('networkFee', fees.network)}
        {row('totalFees', fees.total)}
      </dl>
      <Countdown flow={flow} />
      <Button action="continue" flow={flow} />
      <Button action="back" flow={flow} />
    </>
  );
}

export function Confirm({ flow }: ScreenProps) {
  const { draft, quote, sideOptions } = flow;
  if (!draft || !quote) return <Button action="back" flow={flow} />;
  const { side } = draft;
  const { give } = sums(quote, quote.currency);
  const payout = Object.entries(flow.payout).map(([name, value]) => (name === 'account_type' ? t(value as MessageKey) : value));
  const method = sideOptions?.methods.find((one) => one.id === draft.payment_method);
  const label = t(({ on_ramp: 'payNow', off_ramp: 'sellNow', swap: 'swapNow' } as const)[side], { amount: give[1] });
  return (
    <>
      <Changed flow={flow} />
      <Sums priced={quote} currency={quote.currency} />
      <dl class="rows">
        {side !== 'swap' && method && <div><dt>{t(side === 'off_ramp' ? 'payoutMethod' : 'method')}</dt><dd>{methodName(method)}</dd></div>}
        {side === 'swap' && <div><dt>{t('sourceNetwork')}</dt><dd>{networkName(quote.source_network ?? '')}</dd></div>}
        <div><dt>{t('network')}</dt><dd>{networkName(quote.network)}</dd></div>
        <div><dt>{t('to')}</dt><dd class="long">{side === 'off_ramp' ? payout.map((line) => <span key={line}>{line}</span>) : <span class="code">{draft.wallet_address}</span>}</dd></div>
        <div><dt>{t('totalFees')}</dt><dd><Amount value={quote.fees.total}>{money(quote.fees.total, quote.fees.currency)}</Amount></dd></div>
      </dl>
      <p class="hint">{t('irrevocable')}</p>
      <Countdown flow={flow} />
      <Button action="pay" flow={flow} label={flow.busy ? t('paying') : label} disabled={!flow.mayPay} />
      <Button action="back" flow={flow} />
    </>
  );
}
