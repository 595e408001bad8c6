// Written by generate.mjs from docs/openapi. Do not edit it.

export interface paths {
    "/v1/embed/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel the session
         * @description The user gives up. Afterwards lead the user to `cancel_url`, if there is one.
         */
        post: operations["cancelEmbedSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the options
         * @description What the session can be paid with, or what the open widget offers, to users in the country of the
         *     query or of the edge. A session with a flow has this side alone, and its asset and chain are the
         *     only ones. In a swap they are what the user receives, so the other assets are listed too. The
         *     indicative prices are those of each asset on its first network, unless `asset` or `network` names
         *     another choice; nothing else depends on the two.
         */
        get: operations["listEmbedOptions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/payments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pay the session
         * @description Redeems the session's newest quote. A session has at most one payment in progress or completed,
         *     so two tabs, a double click or a lost response never pay twice. A refused payment consumes
         *     nothing. The payment is `processing` until the rail has moved the money or reports a failure; a
         *     completed payment completes the session.
         */
        post: operations["createEmbedPayment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/payments/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel the payment
         * @description The user gives up the payment, while the rail allows it. The session stays open, and the user may
         *     pay again. A payment that is over cannot be cancelled.
         */
        post: operations["cancelEmbedPayment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/quotes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Quote the session
         * @description Locks the price of the session's amount for a short time. A session has one quote that can be
         *     paid: a new one supersedes it. On a sale the session's amount is the fiat that the user receives,
         *     and the quote says how much of the asset the user must send, rounded up. In a swap the session's
         *     amount is the value of what the user sends: `source_amount` is rounded up, and what the value less
         *     the fees buys is rounded down.
         */
        post: operations["createEmbedQuote"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the session
         * @description The session of the token. With `after` and `wait`, the response waits until the session differs
         *     from that version, or until the wait is over. A wait counts as one request.
         */
        get: operations["retrieveEmbedSession"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/test_helpers/payments/{id}/decline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pretend that the payment was declined
         * @description Ends a payment of the sandbox as `failed` with `provider_declined`. One that has ended is
         *     returned as it is.
         */
        post: operations["declineTestPayment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/test_helpers/payments/{id}/send": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pretend to have paid
         * @description Ends a payment of the sandbox as its amount says, without the wait. A payment whose money never
         *     arrives stays `processing`, and one that has ended is returned as it is.
         */
        post: operations["sendTestPayment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/test_helpers/verification/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve the user of a test
         * @description Ends the pending verification of the session's user as `approved`. One that has ended is returned
         *     as it is.
         */
        post: operations["approveTestVerification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/test_helpers/verification/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reject the user of a test
         * @description Ends the pending verification of the session's user as `rejected`. One that has ended is returned
         *     as it is.
         */
        post: operations["rejectTestVerification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/verification": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Verify the user
         * @description Starts the verification of the session's user, or returns the one that has started. With
         *     `answers`, submits the user's answers to its form; without a form they are refused. Then read
         *     the session until the verification is decided. If the installation has no provider, the status
         *     stays `required`, and `url` and `form` are null.
         */
        post: operations["createEmbedVerification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/bootstrap": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start a widget
         * @description For browsers, with a publishable key. The page's `Origin`, or without an `Origin` its `Referer`,
         *     must equal one of your allowed domains. Returns a token for one partner, and for one session if
         *     its client secret is sent. A session has at most 10 valid tokens: each further one ends the
         *     oldest.
         *
         *     Tier `short` allows 30 requests a minute for your key and the client's address; an IPv6 /64
         *     counts as one address. Tier `medium`, the ceiling, allows 6,000 requests a minute for your key
         *     from all addresses. Reads of outcomes count in the same tiers. Requests from pages that are not
         *     yours are counted separately and use up neither tier.
         */
        post: operations["createEmbedToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embed/outcome": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Read how a session ended
         * @description For browsers, with a publishable key and the session's client secret, for 30 days after the
         *     session's end. The page's `Origin`, or without an `Origin` its `Referer`, must equal one of your
         *     allowed domains. It issues no token. The receipt is for the user alone: deliver after the webhook
         *     `gate_session.completed`, and after nothing else.
         *
         *     It counts in the same tiers as the bootstrap.
         */
        post: operations["retrieveEmbedOutcome"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description Every response that is not a success. Branch on `statusCode`, `type` and `code`, never on `message`. */
        Error: {
            /**
             * @description The kind of error.
             * @enum {string}
             */
            type: "invalid_request" | "unauthorized" | "forbidden" | "not_found" | "conflict" | "rate_limited" | "server_error";
            /** @description A stable identifier of the exact error. */
            code: string;
            /** @description An explanation for people. It may change at any time. */
            message: string;
            /** @description The id of the request; equal to the `X-Request-Id` header. */
            request_id: string;
            /** @description A page that explains the code. */
            doc_url: string | null;
            /** @description The status of the response. */
            statusCode: number;
        };
        /** @description A session as its widget needs it. */
        EmbedSession: {
            /** @description `embed_session` */
            object: string;
            /** @description Session id. */
            id: string;
            /** @description The mode of the session. */
            mode: components["schemas"]["Mode"];
            /** @description The status of the session. A failed payment leaves it open. */
            status: components["schemas"]["SessionStatus"];
            /** @description The bound amount as the partner wrote it. */
            amount: string;
            /** @description ISO 4217 code, in upper case. */
            currency: string;
            flow: components["schemas"]["Flow"] | null;
            /** @description The asset, in upper case, or null. */
            target_token: string | null;
            /** @description The chain, in upper case, or null. */
            target_network: string | null;
            /** @description The destination that the partner named, or null. */
            wallet_address: string | null;
            /**
             * @description Where the user is redirected after success, or null if its origin is no longer one of the
             *     partner's allowed domains.
             */
            return_url: string | null;
            /**
             * @description Where the user is redirected after cancelling, or null. Null also if its origin is no longer one
             *     of the partner's allowed domains.
             */
            cancel_url: string | null;
            /**
             * Format: date-time
             * @description The session is not open from this instant on, unless a payment is in progress.
             */
            expires_at: string;
            /**
             * Format: date-time
             * @description When the session was read.
             */
            server_time: string;
            /** @description The look of the widget. */
            branding: components["schemas"]["Branding"];
            /** @description Who takes the money. */
            merchant: components["schemas"]["Merchant"];
            /** @description Whether the user must be verified. */
            verification: components["schemas"]["EmbedSessionVerification"];
            payment: components["schemas"]["EmbedPayment"] | null;
            /** @description The transaction that completed the session; absent unless it is completed. */
            tx_refid?: string;
            /** @description 16 hexadecimal digits, equal while nothing but `server_time` has changed. */
            version: string;
        };
        /**
         * @description Whether money is real.
         * @enum {string}
         */
        Mode: "test" | "live";
        /**
         * @description The status of a session.
         * @enum {string}
         */
        SessionStatus: "open" | "completed" | "expired" | "cancelled";
        /**
         * @description The flow of a session or transaction.
         * @enum {string}
         */
        Flow: "on_ramp" | "off_ramp" | "swap";
        /** @description The look of the widget. If all fields are null, the widget has the default look. */
        Branding: {
            /** @description `branding` */
            object: string;
            /** @description An absolute https URL, or null. */
            logo_url: string | null;
            /** @description `#RRGGBB`, or null. */
            primary_color: string | null;
            /** @description `#RRGGBB`, or null. */
            secondary_color: string | null;
            /** @description `#RRGGBB`, or null. */
            accent_color: string | null;
            /** @description The name shown to users, or null. */
            brand_name: string | null;
        };
        /** @description Who takes the money. A field is null unless the operator has set it. */
        Merchant: {
            /** @description The name of the company in its register, or null. */
            legal_name: string | null;
            /** @description Where users get help: an absolute https URL, or null. */
            support_url: string | null;
            /** @description The terms: an absolute https URL, or null. */
            terms_url: string | null;
            /** @description The privacy notice: an absolute https URL, or null. */
            privacy_url: string | null;
        };
        /** @description Whether the user must be verified. */
        EmbedSessionVerification: {
            /** @description Whether the user may pay: with `not_required` and `approved`. */
            status: components["schemas"]["VerificationStatus"];
            /** @description The provider's reason for a rejection, or null. */
            reason: string | null;
        };
        /**
         * @description The status of a verification.
         * @enum {string}
         */
        VerificationStatus: "not_required" | "required" | "pending" | "approved" | "rejected";
        /** @description A payment of the session. */
        EmbedPayment: {
            /** @description `embed_payment` */
            object: string;
            /** @description Payment id. */
            id: string;
            /** @description The status of the payment. */
            status: components["schemas"]["EmbedPaymentStatus"];
            /** @description Purchase, sale or swap. */
            side: components["schemas"]["Flow"];
            /** @description The asset that the user receives, or sells in a sale. */
            asset: string;
            /** @description Its chain. */
            network: string;
            /** @description The method; null for a swap. */
            payment_method: string | null;
            /** @description The asset that the user sends in a swap, or null. */
            source_asset: string | null;
            /** @description Its chain, or null. */
            source_network: string | null;
            /** @description How much of it the user sends, or null. */
            source_amount: string | null;
            /** @description The fiat side. */
            fiat_amount: string;
            /** @description The crypto side. */
            crypto_amount: string;
            /** @description Output per input before fees. */
            exchange_rate: string;
            /** @description The fees. */
            fees: components["schemas"]["Fees"];
            /**
             * @description What the user needs in order to pay, by name, or null. The names are the rail's, such as `iban`,
             *     `account_holder`, `bic` and `reference` of a transfer, `address` and `memo` of crypto, or `url` of
             *     the rail's own page. `scan` is the gate's: while the payment is processing, the text of the QR code
             *     for what is still to pay, if there is one. It is the URI of the chain (EIP-681, BIP-21, Solana
             *     Pay), or else the address, and the EPC069-12 code of a transfer in euro.
             */
            instructions: {
                [key: string]: string;
            } | null;
            /**
             * Format: date-time
             * @description Until when the user can pay, or null.
             */
            pay_until: string | null;
            received: components["schemas"]["EmbedPaymentReceived"] | null;
            /** @description Why the payment failed, or null. */
            failure_code: string | null;
            failure_reason: components["schemas"]["FailureReason"] | null;
            /** @description An explanation for people, or null. */
            failure_message: string | null;
            /** @description The reference of the payment's transaction. */
            tx_refid: string;
            /**
             * Format: date-time
             * @description When the payment was created.
             */
            created_at: string;
        };
        /**
         * @description The status of a payment.
         * @enum {string}
         */
        EmbedPaymentStatus: "processing" | "completed" | "failed" | "cancelled";
        /** @description The fees of an order, in its currency. */
        Fees: {
            /** @description The sum of both fees. */
            total: string;
            /** @description The fee for the service. */
            service: string;
            /** @description The fee for the network. */
            network: string;
            /** @description The currency of all fees. */
            currency: string;
        };
        /** @description What has arrived of a payment. While it is less than what is required, the payment stays `processing`. */
        EmbedPaymentReceived: {
            /** @description How much has arrived. */
            amount: string;
            /** @description How much the user pays. */
            required: string;
            /** @description The currency of fiat, or null. */
            currency: string | null;
            /** @description The asset of crypto, or null. */
            asset: string | null;
            /** @description Its chain, or null. */
            network: string | null;
            /**
             * Format: date-time
             * @description When it arrived.
             */
            at: string;
        };
        /**
         * @description Why the rail gives back what had arrived of a payment.
         * @enum {string}
         */
        FailureReason: "amount_differs" | "expired" | "returned" | "refused";
        /** @description What the widget can offer. */
        EmbedOptions: {
            /** @description `embed_options` */
            object: string;
            /** @description The user's country, from the query or from the edge, or null. */
            country_code: string | null;
            /** @description The sides on offer. A side that offers nothing is absent. */
            sides: components["schemas"]["EmbedSide"][];
        };
        /** @description What one side offers. */
        EmbedSide: {
            /** @description Purchase, sale or swap. */
            side: components["schemas"]["Flow"];
            /** @description The assets; in a swap, each of them can be sent and received. */
            assets: components["schemas"]["EmbedAsset"][];
            /** @description The methods of payment or payout; empty for a swap. */
            methods: components["schemas"]["EmbedMethod"][];
            usual_time: components["schemas"]["EmbedUsualTime"] | null;
            /**
             * @description Prices of the session's amount at this time, which promise nothing. Empty for a swap,
             *     if no rate is known, and if the asset and the network of the query are not on offer.
             */
            indicative: components["schemas"]["EmbedIndicative"][];
        };
        /** @description An asset on offer. */
        EmbedAsset: {
            /** @description Symbol of the asset. */
            symbol: string;
            /** @description Name of the asset. */
            name: string;
            /** @description The chains on offer: those whose addresses are checked and that the session's wallet fits. */
            networks: components["schemas"]["EmbedNetwork"][];
            limits: components["schemas"]["AssetLimits"] | null;
        };
        /** @description A chain on offer. */
        EmbedNetwork: {
            /** @description The chain's name. It is case-sensitive. */
            chain: string;
            /** @description The asset's contract, which is the address of no wallet; null for the chain's native asset. */
            contract_address: string | null;
            /** @description Whether it is an EVM chain. */
            evm: boolean;
        };
        /** @description Suggested order amounts. They are advice, and no order is refused because of them. */
        AssetLimits: {
            /** @description The currency of both amounts. */
            currency: string;
            /** @description The smallest amount. */
            min_amount: string;
            /** @description The largest amount. */
            max_amount: string;
        };
        /** @description A way to pay in or to be paid out. */
        EmbedMethod: {
            /** @description Method id. */
            id: string;
            /** @description Name of the method. */
            name: string;
            /** @description The currency of the payment. */
            currency: string;
            account: components["schemas"]["EmbedAccount"] | null;
            usual_time: components["schemas"]["EmbedUsualTime"] | null;
        };
        /**
         * @description The form of an account: with an IBAN, of the United Kingdom or of the United States.
         * @enum {string}
         */
        EmbedAccount: "iban" | "uk" | "us";
        /** @description How long an order usually takes, which promises nothing. */
        EmbedUsualTime: {
            /**
             * Format: int64
             * @description The minimum, in seconds.
             */
            from_seconds: number;
            /**
             * Format: int64
             * @description The maximum, in seconds; it can equal the minimum.
             */
            to_seconds: number;
        };
        /**
         * @description The price of the session's amount for one asset by one method, on the network of the query or
         *     else on the asset's first chain.
         */
        EmbedIndicative: {
            /** @description The asset. */
            asset: string;
            /** @description The method. */
            payment_method: string;
            /** @description What the user receives in a purchase, or sends in a sale. */
            crypto_amount: string;
            /** @description The session's amount: paid in a purchase, received in a sale. */
            fiat_amount: string;
            /** @description Output per input before fees. */
            exchange_rate: string;
            /** @description The fees. */
            fees: components["schemas"]["Fees"];
        };
        /** @description A payment of the session with its quote. */
        CreateEmbedPaymentRequest: {
            /** @description The session's newest quote. */
            quote_id: string;
            /**
             * @description Where the asset of a purchase or swap is delivered; required for both unless the session has an address, which cannot be
             *     changed.
             */
            wallet_address?: string | null;
            /**
             * @description Where a sale is paid out, required for a sale: the fields of the method's `account`. `iban` has `iban`; `uk` has
             *     `sort_code` (6 digits) and `account_number` (8 digits); `us` has `routing_number` (9 digits), `account_number` (4 to 17
             *     digits) and `account_type` (`checking` or `savings`). Each may have `account_holder`, 2 to 70 characters.
             */
            payout?: {
                [key: string]: string;
            } | null;
        };
        /** @description What the user wants to do with the session's amount. The amount itself is bound to the session, so the request has no amount. */
        CreateEmbedQuoteRequest: {
            /** @description `on_ramp` to buy, `off_ramp` to sell, `swap` to send one asset and receive another. */
            side: components["schemas"]["Flow"];
            /** @description The asset to buy or to sell, or to receive in a swap. */
            asset: string;
            /** @description The chain of the asset. */
            network: string;
            /** @description The payment or payout method; required to buy or to sell, and never sent for a swap. */
            payment_method?: string | null;
            /** @description The asset to send in a swap, which is another one than `asset`; required for a swap, and sent for no other side. */
            source_asset?: string | null;
            /** @description The chain of the asset to send; required for a swap, and sent for no other side. */
            source_network?: string | null;
        };
        /**
         * @description A locked rate. A pay-in (`on_ramp`), a pay-out (`off_ramp`) or a swap can redeem it once before
         *     it expires.
         */
        SignedQuote: {
            /** @description Quote id. */
            id: string;
            /** @description `signed_quote` */
            object: string;
            /** @description Branch on this. */
            status: components["schemas"]["SignedQuoteStatus"];
            /** @description The direction of the order. Only quotes of the widget are for a `swap`. */
            side: components["schemas"]["Flow"];
            /** @description ISO 4217 code. */
            currency: string;
            /** @description The asset; in a swap, the one that the user receives. */
            asset: string;
            /** @description The chain of the asset. */
            network: string;
            /** @description The payment or payout method; null for a swap. */
            payment_method: string | null;
            /** @description The asset that the user sends; only in a swap. */
            source_asset?: string;
            /** @description The chain of that asset; only in a swap. */
            source_network?: string;
            /** @description Exactly how much of it the user sends; only in a swap. */
            source_amount?: string;
            /** @description The fiat side: paid on `on_ramp`, received on `off_ramp`, the value of a swap. */
            fiat_amount: string;
            /** @description The crypto side: received on `on_ramp` and in a swap, sold on `off_ramp`. */
            crypto_amount: string;
            /** @description Output per input before fees. */
            exchange_rate: string;
            /** @description The fees of the order. */
            fees: components["schemas"]["Fees"];
            /**
             * Format: date-time
             * @description The quote is expired from this instant on.
             */
            expires_at: string;
            /**
             * Format: date-time
             * @description When the quote was redeemed, or null.
             */
            consumed_at: string | null;
            /**
             * Format: date-time
             * @description When the quote was created.
             */
            created_at: string;
            /**
             * @description HMAC-SHA256 in hexadecimal, with a key of the operator, over the canonical JSON (RFC 8785)
             *     of all other fields except `status` and `consumed_at`. It is evidence for the operator; you
             *     cannot verify it.
             */
            signature: string;
        };
        /**
         * @description The status of a signed quote.
         * @enum {string}
         */
        SignedQuoteStatus: "active" | "consumed" | "expired" | "superseded";
        /** @description A verification, and what the user must do. */
        EmbedVerification: {
            /** @description `embed_verification` */
            object: string;
            /** @description Whether the user may pay: with `not_required` and `approved`. */
            status: components["schemas"]["VerificationStatus"];
            /** @description The provider's page for the user, or null. */
            url: string | null;
            /**
             * @description The fields to show to the user, or null: a flat JSON Schema object of strings, with `title`, `maxLength`, `enum`,
             *     `format` (`date` or `email`) and `required`.
             */
            form: Record<string, never> | null;
            /**
             * Format: date-time
             * @description When `url` and `form` end, or null.
             */
            expires_at: string | null;
            /** @description The provider's reason for a rejection, or null. */
            reason: string | null;
        };
        /** @description The start of a verification, or the user's answers to its form. */
        CreateEmbedVerificationRequest: {
            /** @description The answers to the form of the verification: strings by field. They go to the provider and are not stored. */
            answers?: Record<string, never> | null;
        };
        /** @description The parameters of a widget token. */
        CreateEmbedTokenRequest: {
            /**
             * @description The client secret of the widget's session. Without it the widget is open, which the widget's
             *     own origin does not allow.
             */
            clientSecret?: string | null;
            /** @description The scopes that the token allows. Absent means all; an empty list means none. */
            requested_scopes?: components["schemas"]["EmbedScope"][] | null;
        };
        /**
         * @description The scopes of a token.
         * @enum {string}
         */
        EmbedScope: "session:read" | "session:pay" | "kyc:submit" | "branding:read";
        /** @description The initial data of a widget. The fields of a session are null without a client secret. */
        EmbedToken: {
            /** @description `embed_token` */
            object: string;
            /** @description Whether the widget has something to offer. If not, show a neutral state. */
            available: boolean;
            /** @description The token, for the header `X-Embed-Token` of the widget's calls. */
            embed_token: string;
            /**
             * Format: date-time
             * @description The token is invalid from this instant on.
             */
            expires_at: string;
            /** @description The partner. */
            partner_id: string;
            /** @description The mode of the key. */
            mode: components["schemas"]["Mode"];
            /** @description The session of the token, or null. */
            session_id: string | null;
            /** @description The session's amount, or null. */
            amount: string | null;
            /** @description The session's currency, or null. */
            currency: string | null;
            /** @description The session's asset, or null. */
            target_token: string | null;
            /** @description The session's chain, or null. */
            target_network: string | null;
            /**
             * @description Where the user is redirected after success, or null. Null also if its origin is no longer one of
             *     your allowed domains.
             */
            return_url: string | null;
            flow: components["schemas"]["Flow"] | null;
            /** @description The look of the widget. */
            branding: components["schemas"]["Branding"];
            /**
             * @description Why there is nothing to offer, or null: `quota_exhausted`, or for a session that no choice can
             *     pay `currency_not_supported`, `asset_not_supported`, `corridor_not_available`,
             *     `network_not_supported`, `invalid_address`, `amount_precision` or `amount_out_of_range`.
             */
            unavailable_reason: string | null;
        };
        /** @description The session whose outcome is read. */
        RetrieveEmbedOutcomeRequest: {
            /** @description The client secret of the session. */
            clientSecret: string;
        };
        /** @description How a session ended. */
        EmbedOutcome: {
            /** @description `embed_outcome` */
            object: string;
            /** @description Session id. */
            session_id: string;
            /** @description The mode of the session. */
            mode: components["schemas"]["Mode"];
            /** @description How the session ended. */
            status: components["schemas"]["EmbedOutcomeStatus"];
            /** @description The look of the widget. */
            branding: components["schemas"]["Branding"];
            /** @description Who takes the money. */
            merchant: components["schemas"]["Merchant"];
            /** @description The bound amount as you wrote it. */
            amount: string;
            /** @description ISO 4217 code, in upper case. */
            currency: string;
            flow: components["schemas"]["Flow"] | null;
            /**
             * @description Where the user is redirected after success, or null if its origin is no longer one of your
             *     allowed domains.
             */
            return_url: string | null;
            /**
             * @description Where the user is redirected after cancelling, or null. Null also if its origin is no longer one
             *     of your allowed domains.
             */
            cancel_url: string | null;
            /**
             * Format: date-time
             * @description When the session ended.
             */
            ended_at: string;
            /** @description The session's newest payment, whatever its outcome, or null if none was begun. */
            payment_id: string | null;
            receipt: components["schemas"]["EmbedReceipt"] | null;
        };
        /**
         * @description How a session ended.
         * @enum {string}
         */
        EmbedOutcomeStatus: "completed" | "expired" | "cancelled";
        /** @description The payment that completed a session. */
        EmbedReceipt: {
            /** @description The reference of the payment's transaction. */
            reference: string;
            /** @description Purchase, sale or swap. */
            side: components["schemas"]["Flow"];
            /** @description The method; null for a swap. */
            payment_method: string | null;
            /** @description The fiat side. */
            fiat_amount: string;
            /** @description The currency of the fiat side. */
            currency: string;
            /** @description The crypto side. */
            crypto_amount: string;
            /** @description Output per input before fees. */
            exchange_rate: string;
            /** @description The fees. */
            fees: components["schemas"]["Fees"];
            /** @description The asset that the user received, or sold in a sale. */
            asset: string;
            /** @description Its chain. */
            network: string;
            /** @description The asset that the user sent in a swap, or null. */
            source_asset: string | null;
            /** @description Its chain, or null. */
            source_network: string | null;
            /** @description How much of it the user sent, or null. */
            source_amount: string | null;
            /**
             * @description The first six characters and the last four of the address that received the asset. Null for a
             *     sale, and for a payment that the user did not make in the widget.
             */
            wallet_address: string | null;
            /**
             * Format: date-time
             * @description When the payment was created.
             */
            created_at: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    cancelEmbedSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session, cancelled */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedSession"];
                };
            };
        };
    };
    listEmbedOptions: {
        parameters: {
            query?: {
                /** @description The user's country, an ISO 3166 code; by default the country that the edge reports */
                country_code?: string;
                /** @description The asset that the indicative prices are for; by default each */
                asset?: string;
                /** @description The network that the indicative prices are for, by default the first one of the asset. It is case-sensitive */
                network?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The options */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedOptions"];
                };
            };
        };
    };
    createEmbedPayment: {
        parameters: {
            query?: never;
            header: {
                /** @description A value that you choose, the same for every retry of one intent of the user; it counts for this session alone */
                "Idempotency-Key": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateEmbedPaymentRequest"];
            };
        };
        responses: {
            /** @description The payment, processing */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedPayment"];
                };
            };
        };
    };
    cancelEmbedPayment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Payment id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The payment, cancelled */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedPayment"];
                };
            };
        };
    };
    createEmbedQuote: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateEmbedQuoteRequest"];
            };
        };
        responses: {
            /** @description The quote */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignedQuote"];
                };
            };
        };
    };
    retrieveEmbedSession: {
        parameters: {
            query?: {
                /** @description The `version` that you have, 16 hexadecimal digits. With an unknown version the response is immediate */
                after?: string;
                /** @description How many seconds to wait for another version than `after`; 0 by default */
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedSession"];
                };
            };
        };
    };
    declineTestPayment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Payment id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The payment */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedPayment"];
                };
            };
        };
    };
    sendTestPayment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Payment id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The payment */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedPayment"];
                };
            };
        };
    };
    approveTestVerification: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The verification */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedVerification"];
                };
            };
        };
    };
    rejectTestVerification: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The verification */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedVerification"];
                };
            };
        };
    };
    createEmbedVerification: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateEmbedVerificationRequest"];
            };
        };
        responses: {
            /** @description The verification */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedVerification"];
                };
            };
        };
    };
    createEmbedToken: {
        parameters: {
            query?: {
                /** @description The publishable key, if no header can be sent */
                publishable_key?: string;
            };
            header?: {
                /** @description The origin of the page, as browsers send it */
                Origin?: string;
                /** @description Used if there is no `Origin` */
                Referer?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateEmbedTokenRequest"];
            };
        };
        responses: {
            /** @description The token, and what the widget shows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedToken"];
                };
            };
        };
    };
    retrieveEmbedOutcome: {
        parameters: {
            query?: {
                /** @description The publishable key, if no header can be sent */
                publishable_key?: string;
            };
            header?: {
                /** @description The origin of the page, as browsers send it */
                Origin?: string;
                /** @description Used if there is no `Origin` */
                Referer?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RetrieveEmbedOutcomeRequest"];
            };
        };
        responses: {
            /** @description How the session ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbedOutcome"];
                };
            };
        };
    };
}

/** The error codes that the calls of the widget can return, by status. */
export interface ErrorCodes {
  400: 'address_checksum_mismatch' | 'amount_not_allowed' | 'amount_out_of_range' | 'asset_not_supported' | 'corridor_not_available' | 'country_not_supported' | 'idempotency_key_invalid' | 'idempotency_key_required' | 'invalid_address' | 'invalid_json' | 'invalid_request' | 'network_not_supported' | 'unknown_currency' | 'verification_form_not_asked';
  401: 'secret_key_in_query' | 'unauthorized';
  403: 'client_secret_invalid' | 'gate_not_enabled' | 'key_expired' | 'key_kind_not_allowed' | 'key_revoked' | 'live_key_on_sandbox' | 'live_keys_not_allowed' | 'organization_suspended' | 'origin_not_allowed' | 'scope_missing' | 'session_not_open' | 'session_required' | 'test_key_on_live' | 'verification_rejected' | 'verification_required';
  404: 'resource_not_found';
  408: 'request_timeout';
  409: 'idempotency_in_progress' | 'not_simulated' | 'payment_not_cancellable' | 'quote_consumed' | 'quote_expired' | 'quote_session_mismatch' | 'quote_superseded' | 'rate_unavailable' | 'session_not_open' | 'session_open' | 'session_payment_in_progress' | 'wallet_mismatch';
  413: 'body_too_large';
  415: 'unsupported_media_type';
  429: 'rate_limited';
  500: 'internal_error';
  501: 'rails_not_available';
  503: 'outcome_unknown' | 'overloaded' | 'rail_unavailable' | 'service_unavailable';
}
