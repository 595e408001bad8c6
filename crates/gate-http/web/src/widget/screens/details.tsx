import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { loadChecks } from '../address';
import { accountOf, sameName, type Fault, type Faults } from '../draft';
import type { ViewOf } from '../flow/view';
import { eitherOf, estimate, methodName, money, networkName, t, usually, type MessageKey } from '../i18n';
import { Button, Groups, Picture } from '../parts';
import { ACCOUNT_TYPES, ibanFits, payoutFields, payoutOf } from '../payout';
import type { ScreenProps } from '../screen_props';
import { say } from '../speech';
import type { Indicative, SideOptions, UsualTime } from '../types';

type DetailsView = ViewOf<'details'>;

/** A click that leaves a field ends within this time. */
const JUDGE_MS = 300;

// No text and no choice of the customer is set by `value` or `checked`. Each redraw compares these two with the page, and would overwrite
// what autofill has set without an event. It compares all other properties with the last redraw.
//
// A translator of the browser replaces texts of the page. A sentence that changes is therefore a new element, which has the sentence as
// its key, and values are never translated. Preact sets the property `translate`, which is a boolean.

interface SelectProps {
  name: string;
  label: string;
  value: string;
  choices: [string, string][];
}

/** A choice of one is a text. */
function Select({ name, label, value, choices }: SelectProps) {
  const [only, ...others] = choices;
  if (only && others.length === 0) {
    return (
      <div class="field">
        <span class="label">{label}</span>
        <p class="fixed" key={only[1]}>
          {only[1]}
        </p>
        <input type="hidden" name={name} value={only[0]} />
      </div>
    );
  }
  return (
    <label class="field">
      <span class="label">{label}</span>
      <select name={name}>
        {choices.map(([id, text]) => (
          <option key={id} value={id} selected={id === value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The property `autocorrect` is a boolean in some browsers and absent in others. The attribute means the same in all. */
const neverCorrect = (field: HTMLElement | null) => field?.setAttribute('autocorrect', 'off');

/** Puts the text of the clipboard into a field, as if the customer had typed it. Only a page of its own may read the clipboard. */
function PasteButton({ name }: { name: string }) {
  const [isRefused, setRefused] = useState(false);
  // Web views and pages without a secure context have no clipboard.
  const clipboard = navigator.clipboard as Partial<Clipboard> | undefined;
  if (isRefused || !clipboard?.readText) return null;
  const paste = async () => {
    const text = (await clipboard.readText?.().catch(() => null)) ?? null;
    const field = document.getElementById(name) as HTMLTextAreaElement;
    if (text === null) setRefused(true);
    if (!text) return field.focus();
    field.value = text;
    for (const type of ['input', 'focusout']) field.dispatchEvent(new Event(type, { bubbles: true }));
  };
  return (
    <button type="button" class="link" data-action="paste" aria-label={t('pasteAddress')} onClick={() => void paste()}>
      {t('paste')}
    </button>
  );
}

interface InputProps {
  name: string;
  label: string;
  value: string;
  hint?: string | undefined;
  good?: string | undefined;
  error?: Fault | undefined;
  network: string;
  canPaste?: boolean;
}

function Input({ name, label, value, hint, good, error, network, canPaste }: InputProps) {
  const texts = [error && `${name}-error`, good && `${name}-good`, hint && `${name}-hint`].filter(Boolean).join(' ');
  // After its first value the field keeps its own text.
  const [first] = useState(value);
  const common = {
    id: name,
    name,
    defaultValue: first,
    ref: neverCorrect,
    spellcheck: false,
    translate: false,
    inputmode: 'text' as const,
    autocapitalize: name === 'iban' ? ('characters' as const) : ('none' as const),
    autocomplete: name === 'account_holder' ? 'name' : 'off',
    'aria-invalid': error !== undefined,
    'aria-describedby': texts || undefined,
  };
  // The two lines of an address are one line of text.
  const press = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    if (event.key !== 'Enter' || event.isComposing) return;
    event.preventDefault();
    event.currentTarget.form?.requestSubmit();
  };
  const fault =
    error &&
    t(error.text, {
      network,
      others: eitherOf((error.others ?? []).map(networkName)),
      asset: error.asset ?? '',
    });
  return (
    <div class="field">
      <div class="head">
        <label class="label" for={name}>
          {label}
        </label>
        {canPaste && <PasteButton name={name} />}
      </div>
      {name === 'wallet_address' ? (
        <textarea {...common} rows={2} class="code" onKeyDown={press} />
      ) : (
        <input {...common} />
      )}
      <div class="texts">
        {error && (
          <p class="fault" role="alert" data-code={error.code} id={`${name}-error`} key={fault}>
            <Picture icon="bad" />
            <span>{fault}</span>
          </p>
        )}
        {good && !error && (
          <p class="fine" id={`${name}-good`} key={good}>
            <Picture icon="good" />
            <span>{good}</span>
          </p>
        )}
        {hint && (
          <p class="help" id={`${name}-hint`} key={hint}>
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}

/** What the customer receives by a method, and its fees. Grey blocks of the same size stand for what the gate is asked for. */
function Example({ row }: { row: Indicative | undefined | null }) {
  if (row === undefined) return null;
  const blank = <i class="blank" aria-hidden="true" />;
  const get = row && t('approx', { amount: estimate(row.crypto_amount, row.asset) });
  const fees = row && t('feesAre', { amount: money(row.fees.total, row.fees.currency) });
  return (
    <>
      <span class="get" translate={false} key={get}>
        {get ?? blank}
      </span>
      <small translate={false} key={fees}>
        {fees ?? blank}
      </small>
    </>
  );
}

const Usual = ({ time }: { time: UsualTime | null }) =>
  time ? <small key={usually(time)}>{usually(time)}</small> : null;

/** The methods with an example of each, if there is one for the choice. One method alone is a text. */
function Methods({ view: { draft, estimates }, entry: { methods } }: { view: DetailsView; entry: SideOptions }) {
  const { side, asset } = draft;
  const label = t(side === 'off_ramp' ? 'payoutMethod' : 'method');
  const exampleOf = (method: string) =>
    estimates && estimates.find((one) => one.asset === asset && one.payment_method === method);
  const [only, ...others] = methods;
  if (only && others.length === 0) {
    return (
      <div class="field methods">
        <span class="label">{label}</span>
        <p>
          <span class="name">{methodName(only)}</span>
          <Example row={exampleOf(only.id)} />
          <Usual time={only.usual_time} />
        </p>
        <input type="hidden" name="payment_method" value={only.id} />
      </div>
    );
  }
  return (
    <fieldset class="field methods">
      <legend class="label">{label}</legend>
      {methods.map((method) => (
        <label key={method.id}>
          <input
            type="radio"
            name="payment_method"
            value={method.id}
            defaultChecked={method.id === draft.payment_method}
          />
          <span class="name">{methodName(method)}</span>
          <Example row={exampleOf(method.id)} />
          <Usual time={method.usual_time} />
        </label>
      ))}
    </fieldset>
  );
}

function PayoutFields({ view: { draft, entry }, errors }: { view: DetailsView; errors: Faults }) {
  return (
    <>
      {payoutFields(accountOf(draft, entry)).map((name) => {
        const value = draft[name] ?? '';
        if (name === 'account_type') {
          const choices = ACCOUNT_TYPES.map((one): [string, string] => [one, t(one)]);
          return <Select key={name} name={name} label={t(name)} value={value || ACCOUNT_TYPES[0]} choices={choices} />;
        }
        const label = name === 'account_holder' ? t('optional', { field: t(name) }) : t(name);
        const iban = name === 'iban' && ibanFits(value) && payoutOf('iban', { iban: value })['iban'];
        return (
          <div key={name}>
            <Input
              name={name}
              label={label}
              value={value}
              error={errors[name]}
              network=""
              hint={name === 'iban' && !iban ? t('ibanHint') : undefined}
            />
            {iban && !errors[name] && (
              <p class="fine" translate={false} key={iban}>
                <Picture icon="good" />
                <Groups text={iban} />
              </p>
            )}
          </div>
        );
      })}
    </>
  );
}

function Wallet({ view, error }: { view: DetailsView; error: Fault | undefined }) {
  const { draft, session, isAddressGood } = view;
  const address = draft.wallet_address;
  const network = networkName(draft.network);
  const good = isAddressGood ? t('walletOk', { network, end: address.slice(-4) }) : undefined;
  useEffect(() => void loadChecks(), []);
  useEffect(() => {
    if (good) say(good);
  }, [good]);
  if (session.wallet_address) {
    return (
      <div class="field">
        <span class="label">{t('wallet')}</span>
        <p class="fixed" translate={false}>
          <Groups text={session.wallet_address} />
        </p>
        <input type="hidden" name="wallet_address" value={session.wallet_address} />
        <p class="help">{t('walletFixed')}</p>
      </div>
    );
  }
  return (
    <Input
      name="wallet_address"
      label={t('wallet')}
      value={address}
      network={network}
      good={good}
      hint={t('walletHint', { asset: draft.asset, network })}
      error={error}
      canPaste={!view.isFramed}
    />
  );
}

export function Details(props: ScreenProps<'details'>) {
  const { view, act } = props;
  const [asked, setAsked] = useState(false);
  const [left, setLeft] = useState<string[]>([]);
  const form = useRef<HTMLFormElement>(null);
  const { draft, session, entry, faults } = view;
  // Another screen removes the form. A passive effect would end too late to read it.
  useLayoutEffect(
    () => () => {
      if (form.current) act.keep(form.current);
    },
    [],
  );
  if (!entry) return null;
  const { side } = draft;
  // A field is judged after the customer has left it with something in it, and from the first "Continue" on.
  const isJudged = (name: string) => asked || left.includes(name);
  const errors: Faults = Object.fromEntries(Object.entries(faults).filter(([name]) => isJudged(name)));
  const leave = ({ target }: FocusEvent) => {
    const { name, value } = target as HTMLInputElement;
    const judge = () => {
      if (form.current) act.read(form.current);
      setLeft((names) => [...names, name]);
    };
    // A text that appears at once would move the button that is being pressed.
    if (value) setTimeout(judge, JUDGE_MS);
  };
  const assets = entry.assets.map((one): [string, string] => [one.symbol, one.symbol]);
  const networks = (symbol: string) =>
    (entry.assets.find((one) => one.symbol === symbol)?.networks ?? []).map((one): [string, string] => [
      one.chain,
      networkName(one.chain),
    ]);
  const only = (choices: [string, string][], fixed: string | null | undefined) =>
    side !== 'off_ramp' && fixed ? choices.filter(([id]) => sameName(id, fixed)) : choices;
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (side !== 'off_ramp') await loadChecks();
    if (!form.current) return;
    const [first] = Object.keys(await act.edit(form.current));
    setAsked(true);
    if (first) document.getElementById(first)?.focus();
    else act.do({ type: 'continue' });
  };
  return (
    <form
      onSubmit={(event) => void submit(event)}
      onInput={(event) => void act.edit(event.currentTarget)}
      onFocusOut={leave}
      ref={form}
      noValidate
    >
      {side === 'swap' && (
        <div class="pair">
          <Select
            name="source_asset"
            label={t('youSend')}
            value={draft.source_asset}
            choices={assets.filter(([id]) => id !== draft.asset)}
          />
          <Select
            name="source_network"
            label={t('onNetwork')}
            value={draft.source_network}
            choices={networks(draft.source_asset)}
          />
        </div>
      )}
      <div class="pair">
        <Select
          name="asset"
          label={side === 'swap' ? t('youReceive') : t(`asset_${side}` as MessageKey)}
          value={draft.asset}
          choices={only(assets, session.target_token)}
        />
        <Select
          name="network"
          label={t(side === 'swap' ? 'onNetwork' : 'network')}
          value={draft.network}
          choices={only(networks(draft.asset), session.target_network)}
        />
      </div>
      {side !== 'swap' && <Methods view={view} entry={entry} />}
      {side === 'off_ramp' ? (
        <PayoutFields view={view} errors={errors} />
      ) : (
        <Wallet view={view} error={errors['wallet_address']} />
      )}
      <div class="foot">
        <Button {...props} action="continue" submit />
      </div>
    </form>
  );
}
