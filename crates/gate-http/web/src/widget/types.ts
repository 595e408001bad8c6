/** Shapes of the calls of the widget, by the published documents. */

import type { components, operations } from '../wire/gate_embed';

type Schemas = components['schemas'];
type Operation = keyof operations;

interface Json<Content> {
  content: { 'application/json': Content };
}
/** The body of a request. */
export type Body<O extends Operation> =
  NonNullable<operations[O]['requestBody']> extends Json<infer Content> ? Content : never;
/** The body of a success. */
export type Answer<O extends Operation> =
  operations[O]['responses'] extends Record<number, Json<infer Content>> ? Content : never;

export type ErrorBody = Schemas['Error'];
export type Side = Schemas['Flow'];
export type Branding = Schemas['Branding'];
export type Payment = Schemas['EmbedPayment'];
export type Quote = Schemas['SignedQuote'];
export type Session = Schemas['EmbedSession'];
export type Options = Schemas['EmbedOptions'];
export type SideOptions = Schemas['EmbedSide'];
export type Network = Schemas['EmbedNetwork'];
export type Indicative = Schemas['EmbedIndicative'];
export type Account = Schemas['EmbedAccount'];
export type UsualTime = Schemas['EmbedUsualTime'];
export type QuoteRequest = Body<'createEmbedQuote'>;
export type PaymentRequest = Body<'createEmbedPayment'>;
/** How a session ended. */
export type Outcome = Answer<'retrieveEmbedOutcome'>;
/** The answers to a provider's form, by field. */
export type Answers = Record<string, string>;

/** What a price and a payment have in common. */
export type Priced = Omit<Payment | Quote, 'object' | 'id' | 'status' | 'created_at'>;

/** A provider's form, which the document calls an object alone: a flat JSON Schema of texts. */
export interface VerificationForm {
  properties: Record<string, FormField>;
  required?: string[];
}
export interface FormField {
  title?: string;
  type?: string;
  enum?: string[];
  format?: string;
  maxLength?: number;
}
export type VerificationTask = Omit<Answer<'createEmbedVerification'>, 'form'> & { form: VerificationForm | null };
