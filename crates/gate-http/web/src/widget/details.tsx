import { useEffect, useRef, useState } from 'preact/hooks';
import { areChecksLoaded, loadChecks, readAddress } from './address';
import type { ScreenProps } from './app';
import { accountOf, faultsOf, sameName, type Fault } from './draft';
import { crypto, methodName, money, networkName, t, type MessageKey } from './i18n';
import { Button, Groups, Picture } from './parts';
import { ACCOUNT_TYPES, ibanFits, payoutFields, payoutOf } from './payout';
import { say } from './speech';
import type { Flow } from './flow';

/** A click that leaves a field ends within this time. */
const JUDGE_MS = 300;

interface SelectProps {
  name: string;
  label: string;
  value: string;
  choices: [string, string][];
  onPick: (value: string) => void;
}

/** A choice of one is a text. */
function Select({ name, label, value, choices, onPick }: SelectProps) {
  const [only, ...others] = choices;
  if (only && others.length === 0) {
    return <div class="field"><span class="label">{label}</span><p class="fixed">{only[1]}</p><input type="hidden" name={name} value={only[0]} /></div>;
  }
  return (
    <label class="field">
      <span class="label">{label}</span>
      <select name={name} value={value} onChange={(event) => onPick(event.currentTarget.value)}>
        {choices.map(([id, text]) => <option key={id} value={id} selected={id === value}>{text}</option>)}
      </select>
    </label>
  );
}

/** The property `autocorrect` is a boolean in some browsers and absent in others. The attribute means the same in all. */
const neverCorrect = (field: HTMLElement | null) => field?.setAttribute('autocorrect', 'off');

interface InputProps {
  name: string;
  label: string;
  value: string;
  hint?: string | undefined;
  good?: string | undefined;
  error?: Fault | undefined;
  network: string;
  onType: (value: string) => void;
  onLeave: () => void;
}

function Input({ name, label, value, hint, good, error, network, onType, onLeave }: InputProps) {
  const texts = [error && `${name}-error`, good && `${name}-good`, hint && `${name}-hint`].filter(Boolean).join(' ');
  const common = {
    id: name, name, value, ref: neverCorrect, spellcheck: false, autocapitalize: 'none' as const, autocomplete: name === 'account_holder' ? 'name' : 'off',
    'aria-invalid': error !== undefined, 'aria-describedby': texts || undefined, onBlur: onLeave,
  };
  // The two lines of an address are one line of text.
  const press = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    if (event.key !== 'Enter' || event.isComposing) return;
    event.preventDefault();
    event.currentTarget.form?.requestSubmit();
  };
  return (
    <div class="field">
      <label class="label" for={name}>{label}</label>
      {name === 'wallet_address'
        ? <textarea {...common} rows={2} class="code" onKeyDown={press} onInput={(event) => onType(event.currentTarget.value)} />
        : <input {...common} onInput={(event) => onType(event.currentTarget.value)} />}
      <div class="texts">
        {error && <p class="fault" role="alert" data-code={error.code} id={`${name}-error`}><Picture icon="bad" /><span>{t(error.text, { network, other: networkName(error.other ?? '') })}</span></p>}
        {good && !error && <p class="fine" id={`${name}-good`}><Picture icon="good" /><span>{good}</span></p>}
        {hint && <p class="help" id={`${name}-hint`}>{hint}</p>}
      </div>
    </div>
  );
}

/** Takes the texts from the form itself, because autofill can set a value without an event. */
function readForm(flow: Flow, form: HTMLFormElement): void {
  const { draft, session } = flow;
  if (!draft) return;
  const values = new FormData(form);
  const payout = { ...draft.payout };
  for (const name of payoutFields(accountOf(draft, flow.sideOptions))) {
    const value = values.get(name);
    if (typeof value === 'string') payout[name] = value;
  }
  const address = values.get('wallet_address');
  const isOwn = typeof address === 'string' && !session?.wallet_address;
  flow.edit({ payout, ...(isOwn ? { wallet_address: readAddress(address) } : {}) });
}

/** The methods with what the customer receives by each, if the catalogue's example fits the choice. */
function Methods({ flow }: ScreenProps) {
  const { draft, sideOptions } = flow;
  if (!draft || !sideOptions) return null;
  const { side, asset, network } = draft;
  const label = t(side === 'off_ramp' ? 'payoutMethod' : 'method');
  // The examples are for the first network of each asset.
  const fits = sideOptions.assets.find((one) => one.symbol === asset)?.networks[0]?.chain === network;
  return (
    <fieldset class="field methods">
      <legend class="label">{label}</legend>
      {sideOptions.methods.map((method) => {
        const row = fits ? sideOptions.indicative?.find((one) => one.asset === asset && one.payment_method === method.id) : undefined;
        return (
          <label key={method.id}>
            <input type="radio" name="payment_method" value={method.id} checked={method.id === draft.payment_method} onChange={() => flow.edit({ payment_method: method.id })} />
            <span class="name">{methodName(method)}</span>
            {row && <span class="get">{t('approx', { amount: crypto(row.crypto_amount, asset, 2) })}</span>}
            {row && <small>{t('feesAre', { amount: money(row.fees.total, row.fees.currency) })}</small>}
          </label>
        );
      })}
    </fieldset>
  );
}

type Checked = Record<string, Fault | undefined>;

function PayoutFields({ flow, errors, onLeave }: ScreenProps & { errors: Checked; onLeave: (name: string) => void }) {
  const { draft } = flow;
  if (!draft) return null;
  const change = (name: string, value: string) => flow.edit({ payout: { ...draft.payout, [name]: value } });
  return (
    <>
      {payoutFields(accountOf(draft, flow.sideOptions)).map((name) => {
        const value = draft.payout[name] ?? '';
        if (name === 'account_type') {
          const choices = ACCOUNT_TYPES.map((one): [string, string] => [one, t(one)]);
          return <Select key={name} name={name} label={t(name)} value={value || ACCOUNT_TYPES[0]} choices={choices} onPick={(picked) => change(name, picked)} />;
        }
        const label = name === 'account_holder' ? t('optional', { field: t(name) }) : t(name);
        const isFine = name === 'iban' && ibanFits(value);
        return (
          <div key={name}>
            <Input name={name} label={label} value={value} error={errors[name]} network="" hint={name === 'iban' && !isFine ? t('ibanHint') : undefined} onType={(typed) => change(name, typed)} onLeave={() => onLeave(name)} />
            {isFine && !errors[name] && <p class="fine"><Picture icon="good" /><Groups text={payoutOf('iban', { iban: value })['iban'] ?? ''} /></p>}
          </div>
        );
      })}
    </>
  );
}

function Wallet({ flow, error, onLeave }: ScreenProps & { error: Fault | undefined; onLeave: () => void }) {
  const { draft, session, sideOptions } = flow;
  const raw = draft?.wallet_address ?? '';
  const address = readAddress(raw);
  const network = networkName(draft?.network ?? '');
  const isFine = draft !== null && address !== '' && areChecksLoaded() && !faultsOf({ ...draft, wallet_address: address }, session, sideOptions)['wallet_address'];
  const good = isFine ? t('walletOk', { network, end: address.slice(-4) }) : undefined;
  const [, redraw] = useState(0);
  useEffect(() => void loadChecks().then(() => redraw(1)), []);
  useEffect(() => {
    if (good) say(good);
  }, [good]);
  if (!draft) return null;
  if (session?.wallet_address) {
    return (
      <div class="field">
        <span class="label">{t('wallet')}</span>
        <p class="fixed"><Groups text={session.wallet_address} /></p>
        <input type="hidden" name="wallet_address" value={session.wallet_address} />
        <p class="help">{t('walletFixed')}</p>
      </div>
    );
  }
  return <Input name="wallet_address" label={t('wallet')} value={raw} network={network} good={good} hint={t('walletHint', { asset: draft.asset, network })} error={error} onType={(value) => flow.edit({ wallet_address: value })} onLeave={onLeave} />;
}

export function Details({ flow }: ScreenProps) {
  const [asked, setAsked] = useState(false);
  const [left, setLeft] = useState<string[]>([]);
  const form = useRef<HTMLFormElement>(null);
  const { draft, session, sideOptions } = flow;
  if (!draft || !sideOptions) return null;
  const { side } = draft;
  const tidy = { ...draft, wallet_address: readAddress(draft.wallet_address) };
  const faults = faultsOf(tidy, session, sideOptions);
  // A field is judged after the customer has left it with something in it, and from the first "Continue" on.
  const isJudged = (name: string) => asked || left.includes(name);
  const errors: Checked = Object.fromEntries(Object.entries(faults).filter(([name]) => isJudged(name)));
  const leave = (name: string) => {
    const value = name === 'wallet_address' ? draft.wallet_address : draft.payout[name];
    // A text that appears at once would move the button that is being pressed.
    if (value) setTimeout(() => setLeft((names) => [...names, name]), JUDGE_MS);
  };
  const assets = sideOptions.assets.map((one): [string, string] => [one.symbol, one.symbol]);
  const networks = (symbol: string) => (sideOptions.assets.find((one) => one.symbol === symbol)?.networks ?? []).map((one): [string, string] => [one.chain, networkName(one.chain)]);
  const only = (choices: [string, string][], fixed: string | null | undefined) => (side !== 'off_ramp' && fixed ? choices.filter(([id]) => sameName(id, fixed)) : choices);
  const submit = async (event: Event) => {
    event.preventDefault();
    // A redraw would overwrite what autofill has set.
    if (form.current) readForm(flow, form.current);
    if (side !== 'off_ramp') await loadChecks();
    const [first] = Object.keys(faultsOf(flow.draft, session, sideOptions));
    setAsked(true);
    if (first) document.getElementById(first)?.focus();
    else void flow.next();
  };
  return (
    <form onSubmit={(event) => void submit(event)} ref={form} noValidate>
      {side === 'swap' && (
        <div class="pair">
          <Select name="source_asset" label={t('youSend')} value={draft.source_asset} choices={assets.filter(([id]) => id !== draft.asset)} onPick={(value) => flow.edit({ source_asset: value })} />
          <Select name="source_network" label={t('onNetwork')} value={draft.source_network} choices={networks(draft.source_asset)} onPick={(value) => flow.edit({ source_network: value })} />
        </div>
      )}
      <div class="pair">
        <Select name="asset" label={side === 'swap' ? t('youReceive') : t(`asset_${side}` as MessageKey)} value={draft.asset} choices={only(assets, session?.target_token)} onPick={(value) => flow.edit({ asset: value })} />
        <Select name="network" label={t(side === 'swap' ? 'onNetwork' : 'network')} value={draft.network} choices={only(networks(draft.asset), session?.target_network)} onPick={(value) => flow.edit({ network: value })} />
      </div>
      {side !== 'swap' && <Methods flow={flow} />}
      {side === 'off_ramp' ? <PayoutFields flow={flow} errors={errors} onLeave={leave} /> : <Wallet flow={flow} error={errors['wallet_address']} onLeave={() => leave('wallet_address')} />}
      <div class="foot"><Button action="continue" flow={flow} submit /></div>
    </form>
  );
}
