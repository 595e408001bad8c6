import { useEffect } from 'preact/hooks';
import { isZero, sum } from '../decimals';
import { accountOf } from '../draft';
import type { ViewOf } from '../flow/view';
import type { Price as Terms } from '../flow/state';
import {
  crypto,
  decimal,
  knownMethod,
  methodName,
  money,
  networkName,
  t,
  tSide,
  usually,
  type MessageKey,
} from '../i18n';
import { Amount, Button, CancelLink, Groups, Note, Picture } from '../parts';
import { payoutOf } from '../payout';
import { AddressRow, Receipt, Row } from '../receipt';
import type { ScreenProps } from '../screen_props';
import { say } from '../speech';
import { rateOf, sums } from '../terms';
import type { Quote, SideOptions } from '../types';

interface Change {
  texts: string[];
  isWorse: boolean;
}

/** One amount of the price before and after a change, in words. */
function difference(old: string, now: string, asset: string, up: MessageKey, down: MessageKey): string | null {
  const by = sum(now, old, -1);
  if (isZero(by)) return null;
  return t(by.startsWith('-') ? down : up, { amount: crypto(by.replace('-', ''), asset) });
}

/** What changed between two prices: the amounts, or else the fees, or else the rate. */
function changeOf(before: Quote, now: Quote): Change {
  const { side } = now;
  const same = tSide('same', side);
  if (side === 'off_ramp') {
    const given = difference(before.crypto_amount, now.crypto_amount, now.asset, 'sendMore', 'sendLess');
    if (given)
      return { texts: [given, same], isWorse: !sum(now.crypto_amount, before.crypto_amount, -1).startsWith('-') };
  } else {
    const got = difference(before.crypto_amount, now.crypto_amount, now.asset, 'more', 'less');
    const given =
      side === 'swap'
        ? difference(
            before.source_amount ?? '0',
            now.source_amount ?? '0',
            now.source_asset ?? '',
            'sendMore',
            'sendLess',
          )
        : null;
    const texts = [got, given ?? (got && same)].filter((text) => text !== null);
    if (texts.length > 0)
      return { texts, isWorse: !got || sum(now.crypto_amount, before.crypto_amount, -1).startsWith('-') };
  }
  const fees = (one: Quote) => money(one.fees.total, one.fees.currency);
  const isFee = before.fees.total !== now.fees.total;
  return {
    texts: [
      isFee
        ? t('feesChanged', { before: fees(before), now: fees(now) })
        : t('rateChanged', { before: rateOf(before, before.currency) }),
    ],
    isWorse: true,
  };
}

function Changed({ price: { before, quote }, asks }: { price: Terms; asks?: boolean }) {
  useEffect(() => {
    // A key that is pressed for the old price must not accept the new one.
    if (asks && before && document.hasFocus()) document.getElementById('changed')?.focus();
  }, [before, quote]);
  if (!before) return null;
  const { texts, isWorse } = changeOf(before, quote);
  return (
    <Note icon="fresh" kind={isWorse ? 'warn' : 'good'} code="price_changed" id="changed">
      <strong>{t('changed')}</strong>
      {texts.map((text) => (
        <span key={text}> {text}</span>
      ))}
      {asks && <span> {t('pressAgain')}</span>}
    </Note>
  );
}

function Countdown({
  view: { secondsLeft: left, isOutdated },
  text,
}: {
  view: ViewOf<'price' | 'confirm'>;
  text: string;
}) {
  const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`;
  const sentence = isOutdated ? t('outdated') : left > 0 ? text : t('priceLoading');
  return (
    <p class="countdown">
      <Picture icon="clock" />
      <span key={sentence}>{sentence}</span>
      {left > 0 && (
        <strong aria-hidden="true" translate={false}>
          {clock}
        </strong>
      )}
      {left > 0 && <span class="hidden">{t('refreshed')}</span>}
    </p>
  );
}

/** Grey blocks in the shape of the price. */
const Shape = () => (
  <div class="ghost" aria-hidden="true">
    <i />
    <i />
    <i />
  </div>
);

function Figure({ price: { quote, before: old }, entry }: { price: Terms; entry: SideOptions | undefined }) {
  const { side, currency } = quote;
  const method = entry?.methods.find((one) => one.id === quote.payment_method);
  const usual = (method ?? entry)?.usual_time;
  const isSale = side === 'off_ramp';
  const { give, get } = sums(quote, currency);
  const before = old && (isSale ? sums(old, currency).give : sums(old, currency).get)[1];
  return (
    <div class="sums">
      <p>{t(isSale ? 'youSend' : 'youReceive')}</p>
      <p class="big">
        <span class="amount" data-value={(isSale ? give : get)[0]} translate={false}>
          {decimal((isSale ? give : get)[0])}
          <small>{quote.asset}</small>
        </span>
      </p>
      {before && <p translate={false}>{t('before', { amount: before })}</p>}
      <p class="rate" data-value={quote.exchange_rate} translate={false}>
        {t('onAt', { network: networkName(quote.network), rate: rateOf(quote, currency) })}
      </p>
      {usual && <p key={usually(usual)}>{usually(usual)}</p>}
    </div>
  );
}

export function Price(props: ScreenProps<'price'>) {
  const { view, act } = props;
  const { price } = view;
  const quote = price?.quote;
  useEffect(() => {
    if (!quote || price?.before) return;
    const { give, get } = sums(quote, quote.currency);
    say(
      t(quote.side === 'on_ramp' ? 'says_on_ramp' : 'says_off_ramp', {
        give: give[1],
        get: get[1],
        fees: money(quote.fees.total, quote.fees.currency),
      }),
    );
  }, [quote]);
  if (!price) {
    // The same amount is refused again.
    const mayHelp = view.trouble?.text !== 'outOfRange';
    return (
      <>
        {view.work && <Shape />}
        <div class="foot">
          {view.work && <Button {...props} action="continue" disabled />}
          {!view.work && mayHelp && <Button {...props} action="retry" />}
          {!view.work && (
            <Button
              {...props}
              action="back"
              kind={mayHelp ? 'second' : 'main'}
              label={t('otherCoin')}
              run={() => act.do({ type: 'choose_again' })}
            />
          )}
        </div>
      </>
    );
  }
  return (
    <>
      <Changed price={price} />
      <div class={view.secondsLeft > 0 ? 'stack' : 'stack old'}>
        <Figure price={price} entry={view.entry} />
        <Receipt quote={price.quote} />
      </div>
      <Countdown view={view} text={t('held')} />
      <div class="foot">
        {view.isOutdated ? (
          <Button {...props} action="retry" label={t('showPrice')} />
        ) : (
          <Button {...props} action="continue" />
        )}
        {view.isCancelled && <CancelLink {...props} />}
      </div>
    </>
  );
}

/** The payout of a sale as the customer typed it. */
function Account({ payout }: { payout: Record<string, string> }) {
  return (
    <Row label={t('toAccount')} wide>
      {Object.entries(payout).map(([name, value]) => (
        <span class="line" key={name}>
          {name === 'iban' ? <Groups text={value} /> : name === 'account_type' ? t(value as MessageKey) : value}
        </span>
      ))}
    </Row>
  );
}

export function Confirm(props: ScreenProps<'confirm'>) {
  const { view } = props;
  const { draft, entry, price } = view;
  const { quote } = price;
  const { side } = draft;
  const { give, get } = sums(quote, quote.currency);
  const isSale = side === 'off_ramp';
  const coins = isSale ? give : get;
  const method = entry?.methods.find((one) => one.id === draft.payment_method);
  // What follows on a method that the widget does not know is said by its instructions.
  const next =
    side !== 'on_ramp'
      ? 'nextCrypto'
      : draft.payment_method === 'card'
        ? 'nextCard'
        : knownMethod(draft.payment_method) && 'nextBank';
  return (
    <>
      <p class="lead">{t(isSale ? 'checkAccount' : 'checkAddress')}</p>
      <Changed price={price} asks />
      {/* Amounts of the receipt below are not repeated. */}
      <dl class="box sums rows">
        {side === 'swap' ? (
          <Row label={t('network')}>
            <span class="line">{`${quote.source_asset}, ${networkName(quote.source_network ?? '')}`}</span>
            <span class="line">{`${quote.asset}, ${networkName(quote.network)}`}</span>
          </Row>
        ) : (
          <Row label={t(isSale ? 'youSend' : 'youReceive')} big>
            <Amount value={coins[0]}>{coins[1]}</Amount>
            <small>{networkName(quote.network)}</small>
          </Row>
        )}
        {isSale ? (
          <Account payout={payoutOf(accountOf(draft, entry), draft)} />
        ) : (
          <AddressRow label={t('toWallet')} text={draft.wallet_address} />
        )}
        {side !== 'swap' && method && <Row label={t(isSale ? 'payoutMethod' : 'method')}>{methodName(method)}</Row>}
      </dl>
      <div class={view.secondsLeft > 0 ? 'stack' : 'stack old'}>
        <Receipt quote={quote} />
      </div>
      <Countdown view={view} text={t('heldAsk')} />
      <div class="foot">
        {view.isOutdated && !view.work ? (
          <Button {...props} action="retry" label={t('showPrice')} />
        ) : (
          <Button {...props} action="pay" label={tSide('pay', side, { amount: give[1] })} disabled={!view.mayPay} />
        )}
        {next && <p class="help">{t(next)}</p>}
      </div>
    </>
  );
}
