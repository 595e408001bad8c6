import { t } from './i18n';
import { safeLink } from './links';
import type { Session } from './types';

const Link = ({ to, kind, children }: { to: string; kind?: string | undefined; children: string }) => (
  <a href={to} class={kind} target="_blank" rel="noopener noreferrer">
    {children}
  </a>
);

/** Who takes the money, and the pages of this merchant. What the merchant lacks leaves no gap. */
export function Footer({ session }: { session: Session | null }) {
  const merchant = session?.merchant;
  const name = merchant?.legal_name;
  const page = (label: 'help' | 'terms' | 'privacy', url: string | null | undefined) => {
    const to = safeLink(url, session?.mode);
    return (
      to && (
        <Link to={to} kind={label === 'help' ? 'support' : undefined}>
          {t(label)}
        </Link>
      )
    );
  };
  return (
    <footer>
      {name && <p>{t('runBy', { name })}</p>}
      <span>
        {t('powered')} <strong>Penstock</strong>
      </span>
      <span class="links">
        {page('help', merchant?.support_url)}
        {page('terms', merchant?.terms_url)}
        {page('privacy', merchant?.privacy_url)}
        <Link to="/licenses.txt">{t('licences')}</Link>
      </span>
    </footer>
  );
}
