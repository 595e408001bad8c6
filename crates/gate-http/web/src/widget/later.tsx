// The screens after the details. They are loaded while the customer sees the first ones.

import type { LaterStep } from './flow/steps';
import type { ViewOf } from './flow/view';
import { t, tSide } from './i18n';
import type { ScreenProps } from './screen_props';
import { Instructions, instructionsTitle, Progress } from './screens/payment';
import { Confirm, Price } from './screens/price';
import { Done, doneTitle, Failed, failureOf } from './screens/results';
import { Verification } from './screens/verification';

export function LaterScreen({ view, act }: ScreenProps<LaterStep>) {
  switch (view.step) {
    case 'price':
      return <Price view={view} act={act} />;
    case 'verification':
      return <Verification view={view} act={act} />;
    case 'confirm':
      return <Confirm view={view} act={act} />;
    case 'instructions':
      return <Instructions view={view} act={act} />;
    case 'progress':
      return <Progress view={view} act={act} />;
    case 'done':
      return <Done view={view} act={act} />;
    case 'failed':
      return <Failed view={view} act={act} />;
  }
}

export function laterHeading(view: ViewOf<LaterStep>): string {
  switch (view.step) {
    case 'price':
      return t('priceTitle');
    case 'verification':
      return t('verificationTitle');
    case 'confirm':
      return tSide('confirm', view.draft.side);
    case 'instructions':
      return instructionsTitle(view);
    case 'progress':
      return t('progressTitle');
    case 'done':
      return doneTitle(view);
    case 'failed':
      return t(failureOf(view.payment)[0]);
  }
}
