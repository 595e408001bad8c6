import { limitsMisfit } from '../draft';
import type { ViewOf } from '../flow/view';
import { eitherOf, estimate, methodInText, money, t } from '../i18n';
import { Button, CancelLink, limitsText, Note, Picture, type Icon } from '../parts';
import type { ScreenProps } from '../screen_props';
import { say } from '../speech';

/** What the chosen side takes and gives, in three lines. */
function linesOf({
  session,
  draft: { side, asset },
  entry,
}: ViewOf<'choose'>): [Icon, string, (string | undefined)?][] {
  const amount = money(session.amount, session.currency);
  const methods = entry?.methods ?? [];
  const ways = methods.length ? t('byMethods', { methods: eitherOf(methods.map(methodInText)) }) : undefined;
  if (side === 'swap')
    return [
      ['off_ramp', t('sendOne')],
      ['coins', t('receiveAnother', { amount }), t('everyFee')],
      ['wallet', t('needWalletNew')],
    ];
  if (side === 'off_ramp')
    return [
      ['wallet', t('sendFromWallet'), t('everyFee')],
      ['bank', t('receiveThis', { amount }), ways],
      ['info', t(methods.every(({ account }) => account === 'iban') ? 'needIban' : 'needAccount')],
    ];
  const symbols = (entry?.assets ?? [])
    .map(({ symbol }) => symbol)
    .filter((symbol) => !session.target_token || symbol.toLowerCase() === session.target_token.toLowerCase());
  const example = entry?.indicative.find((one) => one.asset === asset);
  return [
    ['bank', t('payAmount', { amount }), ways],
    [
      'coins',
      t('receiveThis', { amount: eitherOf(symbols) }),
      example ? t('aboutToday', { amount: estimate(example.crypto_amount, example.asset) }) : t('everyFee'),
    ],
    ...(session.wallet_address ? [] : [['wallet', t('needWallet'), t('anyWallet')] as [Icon, string, string]]),
  ];
}

export function Choose(props: ScreenProps<'choose'>) {
  const { view, act } = props;
  const {
    sides,
    draft: { side },
    entry,
    session,
    canLeave,
  } = view;
  // The limits are advice of the operator. They alone do not turn away an amount that has a price, and a swap has no examples of prices.
  const limits = side === 'swap' || entry?.indicative.length ? null : limitsMisfit(entry, session);
  const choose = (one: typeof side) => {
    act.do({ type: 'choose_side', side: one });
    say(t('selected', { side: t(one) }));
  };
  const move = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const target = by && sides[(sides.indexOf(side) + by + sides.length) % sides.length];
    if (target) {
      event.preventDefault();
      choose(target);
      document.querySelector<HTMLElement>(`[data-flow="${target}"]`)?.focus();
    }
  };
  return (
    <>
      {sides.length > 1 && (
        <div class="tabs" role="tablist" aria-label={t('kinds')} onKeyDown={move}>
          {sides.map((one) => (
            <button
              key={one}
              type="button"
              role="tab"
              data-flow={one}
              id={`tab-${one}`}
              aria-selected={one === side}
              aria-controls="panel"
              tabIndex={one === side ? 0 : -1}
              onClick={() => choose(one)}
            >
              <Picture icon={one} />
              <span>{t(one)}</span>
            </button>
          ))}
        </div>
      )}
      <div id="panel" {...(sides.length > 1 ? { role: 'tabpanel', 'aria-labelledby': `tab-${side}` } : {})}>
        <ul class="lines">
          {linesOf(view).map(([icon, title, text]) => (
            <li key={title}>
              <Picture icon={icon} kind="badge" />
              <span>
                <strong>{title}</strong>
                {text && <small key={text}>{text}</small>}
              </span>
            </li>
          ))}
        </ul>
      </div>
      {limits && (
        <Note icon="warn" kind="warn" code="amount_out_of_range">
          <span key={side}>
            {t('noChoice')} {limitsText(limits)}
          </span>
        </Note>
      )}
      <div class="foot">
        {!limits ? <Button {...props} action="continue" /> : canLeave && <Button {...props} action="return" />}
        <CancelLink {...props} />
      </div>
    </>
  );
}
