import { useState } from 'preact/hooks';
import { t } from '../i18n';
import { providerLink } from '../links';
import { Alert, Button, CancelLink, Note, Ring } from '../parts';
import type { ScreenProps } from '../screen_props';
import type { FormField, VerificationForm } from '../types';

function AnswerForm(props: ScreenProps<'verification'> & { form: VerificationForm }) {
  const { act, form } = props;
  const field = (name: string, one: FormField) => {
    const required = form.required?.includes(name) === true;
    return (
      <label class="field" key={name}>
        <span class="label">{one.title ?? name}</span>
        {one.enum ? (
          <select name={name} required={required}>
            {!required && <option />}
            {one.enum.map((value) => (
              <option key={value}>{value}</option>
            ))}
          </select>
        ) : one.format === 'date' ? (
          <input name={name} required={required} type="date" />
        ) : one.format === 'email' ? (
          <input name={name} required={required} type="email" maxLength={one.maxLength} />
        ) : (
          <input name={name} required={required} maxLength={one.maxLength} />
        )}
      </label>
    );
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const answers: Record<string, string> = {};
    new FormData(event.currentTarget as HTMLFormElement).forEach((value, name) => {
      const answer = typeof value === 'string' ? value.trim() : '';
      if (answer || form.required?.includes(name)) answers[name] = answer;
    });
    act.do({ type: 'answer', answers });
  };
  return (
    <form onSubmit={submit}>
      {Object.entries(form.properties).map(([name, one]) => field(name, one))}
      <div class="foot">
        <Button {...props} action="continue" submit label={t('send')} />
      </div>
    </form>
  );
}

/** The provider's page opens in a new tab. This page follows the session meanwhile. */
function PartnerLink({ url }: { url: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {isOpen && (
        <div class="waiting">
          <Ring />
          <p>{t('comeBack')}</p>
        </div>
      )}
      <a
        class={isOpen ? 'main second' : 'main'}
        data-action="continue"
        href={url}
        target="_blank"
        rel="noopener noreferrer"
        onClick={() => setOpen(true)}
      >
        {t(isOpen ? 'openAgain' : 'partner')}
      </a>
    </>
  );
}

export function Verification(props: ScreenProps<'verification'>) {
  const { task, session, token, canLeave } = props.view;
  const { status, reason } = session.verification;
  if (status === 'rejected') {
    return (
      <>
        <Note icon="bad" kind="bad" code="verification_rejected">
          {t('verificationRejected')}
        </Note>
        {reason && <p class="help">{reason}</p>}
        <div class="foot">{canLeave && <Button {...props} action="return" />}</div>
      </>
    );
  }
  const link = providerLink(task?.url, session.mode, token);
  // A provider asks while the verification is pending already.
  const pending = status === 'pending' && task !== null && !link && !task.form;
  return (
    <>
      {pending ? (
        <div class="waiting">
          <Ring />
          <p>{t('verificationPending')}</p>
        </div>
      ) : (
        <p class="lead">{t('verificationText')}</p>
      )}
      <Alert {...props} />
      {task?.form && <AnswerForm {...props} form={task.form} />}
      <div class="foot">
        {link && !task?.form && <PartnerLink url={link} />}
        {!link && !task?.form && !pending && <Button {...props} action="continue" />}
        <CancelLink {...props} />
      </div>
    </>
  );
}
