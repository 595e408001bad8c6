//! Country codes.

use std::fmt;

use iso3166_static::{Alpha2, Numeric};

/// A country of ISO 3166 by its two letters, in upper case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CountryCode(Alpha2);

impl CountryCode {
    /// Parses a code of any case. `None` if ISO 3166-1 has not assigned the code to a country.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let code = text.to_ascii_uppercase();
        let code = Alpha2::try_from(code.as_str()).ok()?;
        // Reserved and user-assigned codes have no numeric code.
        Numeric::try_from(code).is_ok().then_some(Self(code))
    }

    /// The two letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for CountryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

kernel::debug_as_display!(CountryCode);

#[cfg(test)]
mod tests {
    use super::*;

    /// Every officially assigned code of ISO 3166-1.
    const ASSIGNED: &str = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI \
        BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX \
        CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL \
        GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP \
        KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK \
        ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE \
        PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM \
        SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY \
        UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW";

    // rule: gate.catalogue.iso-3166
    #[test]
    fn exactly_assigned_codes_parse() {
        let letters = || ('A'..='Z').map(String::from);
        let codes = letters().flat_map(|first| letters().map(move |next| first.clone() + &next));
        let known: Vec<String> = codes
            .filter(|code| CountryCode::parse(code).is_some())
            .collect();
        let assigned: Vec<&str> = ASSIGNED.split_whitespace().collect();
        assert_eq!(known, assigned);
    }

    #[test]
    fn code_parses_in_either_case_only_if_assigned() {
        assert_eq!(CountryCode::parse("gB").unwrap().as_str(), "GB");
        for bad in ["", "D", "DEU", "D1", "T1", "ÄÖ", " DE", "276"] {
            assert!(CountryCode::parse(bad).is_none(), "{bad}");
        }
    }
}
