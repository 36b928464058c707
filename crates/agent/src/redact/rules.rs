//! Keys of well-known forms. Each form is what its issuer documents or what the public rules of gitleaks and of GitHub's
//! secret scanning look for: a fixed beginning, and a tail of known characters and length. Forms that nothing marks (bare
//! hex of some length) are no rules here: a hash looks the same.

/// Which bytes the tail of a form may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// `0-9 a-f A-F`
    Hex,
    /// Letters and digits.
    Alnum,
    /// Letters, digits, `_` and `-`.
    Word,
    /// Those, and dots.
    Dotted,
    /// Base64 of both alphabets.
    Base64,
    /// What a header may carry: letters, digits, `-._~+/=`.
    Header,
}

impl Class {
    pub(super) const fn has(self, byte: u8) -> bool {
        match self {
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'='),
            Self::Header => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
            }
        }
    }
}

/// What else the tail of a form has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    /// Nothing.
    Nothing,
    /// It holds a digit or a capital: words do not.
    NoWords,
    /// It looks drawn by lot.
    Random,
    /// Two more dots, the first part and the second each JSON in base64.
    Jwt,
    /// At least that many dots.
    Dots(usize),
    /// Base64 of `name:password`.
    BasicAuth,
    /// It holds this text.
    Holds(&'static [u8]),
}

/// A form.
#[derive(Debug)]
pub(super) struct Rule {
    /// What it is, with its article.
    pub(super) what: &'static str,
    /// How it begins; one of them.
    pub(super) prefixes: &'static [&'static str],
    /// What follows.
    pub(super) tail: Class,
    /// How much of that at least.
    pub(super) least: usize,
    /// How much of that at most; more is another thing.
    pub(super) most: usize,
    /// What else.
    pub(super) demand: Demand,
    /// The beginning is no part of the secret.
    pub(super) keeps_prefix: bool,
    /// It may stand in the middle of a word.
    pub(super) anywhere: bool,
}

const fn rule(
    what: &'static str,
    prefixes: &'static [&'static str],
    tail: Class,
    least: usize,
    most: usize,
    demand: Demand,
) -> Rule {
    Rule { what, prefixes, tail, least, most, demand, keeps_prefix: false, anywhere: false }
}

const fn exact(what: &'static str, prefixes: &'static [&'static str], tail: Class, length: usize) -> Rule {
    rule(what, prefixes, tail, length, length, Nothing)
}

const fn after(
    what: &'static str,
    prefixes: &'static [&'static str],
    tail: Class,
    least: usize,
    demand: Demand,
) -> Rule {
    Rule { what, prefixes, tail, least, most: LONG, demand, keeps_prefix: true, anywhere: true }
}

/// Longer than any of the open forms is.
pub(super) const LONG: usize = 4096;

use Class::{Alnum, Base64, Dotted, Header, Hex, Word};
use Demand::{BasicAuth, Dots, Holds, Jwt, NoWords, Nothing, Random};

/// All of them. Of two that fit at one place the one with the longer beginning counts.
pub(super) const RULES: &[Rule] = &[
    // Model providers.
    rule("an Anthropic key", &["sk-ant-"], Word, 16, LONG, Nothing),
    rule("an OpenAI key", &["sk-proj-", "sk-svcacct-", "sk-admin-"], Word, 20, LONG, Nothing),
    rule("an OpenRouter key", &["sk-or-v1-"], Alnum, 32, 128, Nothing),
    rule("a key of the form sk-…", &["sk-"], Word, 16, LONG, NoWords),
    exact("a Groq key", &["gsk_"], Alnum, 52),
    rule("an xAI key", &["xai-"], Alnum, 60, 120, Nothing),
    rule("a Perplexity key", &["pplx-"], Alnum, 40, 64, Nothing),
    rule("a Replicate token", &["r8_"], Alnum, 37, 40, Nothing),
    rule("a Hugging Face token", &["hf_", "api_org_"], Alnum, 30, 40, Nothing),
    rule("a Fireworks key", &["fw_"], Alnum, 22, 32, Random),
    rule("a LangSmith key", &["lsv2_pt_", "lsv2_sk_"], Word, 40, 64, Nothing),
    rule("a Tavily key", &["tvly-"], Word, 24, 64, Random),
    rule("an NVIDIA key", &["nvapi-"], Word, 60, 80, Nothing),
    // Clouds.
    exact("an AWS access key id", &["AKIA", "ASIA", "ABIA", "ACCA"], Alnum, 16),
    rule("an Amazon Bedrock key", &["ABSK"], Base64, 100, 280, Nothing),
    rule("an Amazon Bedrock key", &["bedrock-api-key-"], Base64, 40, LONG, Nothing),
    exact("a Google API key", &["AIza"], Word, 35),
    rule("a Google OAuth secret", &["GOCSPX-"], Word, 24, 32, Nothing),
    rule("a Google OAuth token", &["ya29."], Word, 30, LONG, Nothing),
    after("an Azure storage key", &["AccountKey=", "SharedAccessKey="], Base64, 40, Nothing),
    exact("an Alibaba Cloud key id", &["LTAI"], Alnum, 20),
    exact("a DigitalOcean token", &["dop_v1_", "doo_v1_", "dor_v1_"], Hex, 64),
    exact("a Databricks token", &["dapi"], Hex, 32),
    rule("a Heroku key", &["HRKU-"], Word, 30, 70, Nothing),
    rule("a Fly.io token", &["fo1_", "fm1r_", "fm1a_", "fm2_"], Base64, 40, LONG, Nothing),
    rule("a Cloudflare origin key", &["v1.0-"], Word, 160, 180, Nothing),
    rule("a PlanetScale token", &["pscale_tkn_", "pscale_oauth_", "pscale_pw_"], Dotted, 32, 64, Nothing),
    rule("a Supabase token", &["sbp_", "sb_secret_"], Word, 30, 60, Random),
    rule("a Vercel token", &["vercel_blob_rw_", "vcp_", "vck_"], Word, 24, 80, Random),
    rule("a Netlify token", &["nfp_"], Alnum, 36, 48, Nothing),
    exact("a Pulumi token", &["pul-"], Hex, 40),
    rule(
        "a Doppler token",
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        Dotted,
        40,
        80,
        Nothing,
    ),
    rule("a Vault token", &["hvs.", "hvb.", "hvr."], Word, 24, 300, Nothing),
    Rule { anywhere: true, ..rule("a Terraform token", &[".atlasv1."], Base64, 60, 70, Nothing) },
    rule("an age key", &["AGE-SECRET-KEY-1"], Alnum, 58, 58, Nothing),
    rule("a 1Password token", &["ops_eyJ"], Base64, 100, LONG, Nothing),
    rule("an Infracost key", &["ico-"], Alnum, 32, 32, Nothing),
    rule("an OpenShift token", &["sha256~"], Word, 43, 43, Nothing),
    // Code and packages.
    rule("a GitHub token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], Alnum, 20, 255, NoWords),
    rule("a GitHub token", &["github_pat_"], Word, 20, 255, Nothing),
    rule(
        "a GitLab token",
        &[
            "glpat-", "gldt-", "glft-", "glrt-", "glimt-", "gloas-", "glsoat-", "glptt-", "glcbt-", "glagent-",
            "glffct-", "glwt-",
        ],
        Dotted,
        16,
        320,
        Nothing,
    ),
    exact("a GitLab runner token", &["GR1348941"], Word, 20),
    rule("a Bitbucket token", &["ATBB", "ATCTT3xFfG"], Base64, 32, 256, Nothing),
    rule("an Atlassian token", &["ATATT3xFfG"], Base64, 100, 256, Nothing),
    rule("an npm token", &["npm_"], Alnum, 36, 36, Nothing),
    rule("a PyPI token", &["pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"], Word, 50, LONG, Nothing),
    exact("a RubyGems key", &["rubygems_"], Hex, 48),
    rule("a crates.io token", &["cio"], Alnum, 32, 32, Random),
    Rule { anywhere: true, ..exact("a Clojars token", &["CLOJARS_"], Alnum, 60) },
    rule("a NuGet key", &["oy2"], Alnum, 43, 43, Random),
    rule("a Docker Hub token", &["dckr_pat_", "dckr_oat_"], Word, 27, 40, Nothing),
    rule("a JFrog key", &["AKCp"], Alnum, 69, 69, Nothing),
    rule("a JFrog token", &["cmVmd"], Alnum, 59, 59, Nothing),
    rule("a Sourcegraph token", &["sgp_"], Word, 40, 64, Random),
    rule("a CircleCI token", &["CCIPAT_", "CCIPRJ_"], Word, 40, 80, Nothing),
    rule("a Buildkite token", &["bkua_", "bkaj_", "bkpat_"], Alnum, 40, 40, Nothing),
    rule("an Octopus Deploy key", &["API-"], Alnum, 26, 32, Random),
    rule("a Prefect token", &["pnu_", "pnb_"], Alnum, 36, 36, Nothing),
    rule("a Scalingo token", &["tk-us-"], Word, 48, 48, Nothing),
    rule("a Postman key", &["PMAK-"], Word, 59, 59, Nothing),
    rule("a ReadMe key", &["rdme_"], Alnum, 70, 70, Nothing),
    rule("a SonarQube token", &["squ_", "sqp_", "sqa_"], Hex, 40, 40, Nothing),
    rule("a Snyk token", &["snyk_uat.", "snyk_sat."], Dotted, 40, 200, Nothing),
    rule("a Figma token", &["figd_", "figu_"], Word, 38, 64, Nothing),
    rule("a Linear key", &["lin_api_", "lin_oauth_"], Alnum, 32, 64, Nothing),
    rule("a Notion token", &["ntn_"], Alnum, 40, 56, Nothing),
    rule("an Airtable token", &["pat"], Dotted, 79, 79, Dots(1)),
    rule("a Harness token", &["pat.", "sat."], Dotted, 60, 80, Dots(2)),
    // People and messages.
    rule(
        "a Slack token",
        &["xoxb-", "xoxp-", "xoxa-", "xoxe-", "xoxo-", "xoxr-", "xoxs-", "xoxc-", "xoxd-"],
        Word,
        10,
        256,
        Nothing,
    ),
    rule("a Slack token", &["xapp-", "xoxe.xoxb-", "xoxe.xoxp-"], Word, 16, 256, NoWords),
    after(
        "a Slack web hook",
        &["hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"],
        Base64,
        20,
        NoWords,
    ),
    after("a Discord web hook", &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"], Base64, 60, NoWords),
    after("a Teams web hook", &[".webhook.office.com/webhookb2/"], Header, 60, NoWords),
    rule("a SendGrid key", &["SG."], Dotted, 60, 80, Dots(1)),
    rule("a Brevo key", &["xkeysib-", "xsmtpsib-"], Word, 64, 96, Nothing),
    rule("a Resend key", &["re_"], Word, 30, 40, Random),
    exact("a Twilio key", &["SK", "AC"], Hex, 32),
    rule("a Typeform token", &["tfp_"], Dotted, 40, 80, Nothing),
    rule("a Contentful token", &["CFPAT-"], Word, 40, 64, Nothing),
    rule("a Telnyx key", &["KEY01"], Word, 40, 64, Nothing),
    rule("a Frame.io token", &["fio-u-"], Word, 60, 70, Nothing),
    // Money and shops.
    rule(
        "a Stripe key",
        &["sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"],
        Alnum,
        10,
        128,
        Nothing,
    ),
    rule("a Stripe signing secret", &["whsec_"], Base64, 24, 64, Random),
    rule("a Square token", &["EAAA", "sq0atp-", "sq0csp-"], Word, 22, 64, Random),
    exact("a Shopify token", &["shpat_", "shpca_", "shppa_", "shpss_"], Hex, 32),
    exact("a Shippo token", &["shippo_live_", "shippo_test_"], Hex, 40),
    rule("an EasyPost key", &["EZAK", "EZTK"], Alnum, 54, 54, Nothing),
    rule("a Duffel token", &["duffel_live_", "duffel_test_"], Word, 43, 43, Nothing),
    rule("a Flutterwave key", &["FLWSECK_TEST-", "FLWSECK-", "FLWPUBK_TEST-"], Word, 12, 40, Random),
    rule("a Razorpay key", &["rzp_live_", "rzp_test_"], Alnum, 14, 24, Nothing),
    rule("a Plaid token", &["access-sandbox-", "access-development-", "access-production-"], Word, 36, 36, Nothing),
    rule("a Facebook token", &["EAAC", "EAAM"], Alnum, 90, LONG, Nothing),
    // Watching.
    rule("a Grafana token", &["glc_", "glsa_", "eyJrIjoi"], Base64, 32, 400, Nothing),
    rule("a New Relic key", &["NRAK-", "NRII-", "NRJS-", "NRRA-", "NRAL-"], Word, 19, 48, NoWords),
    rule("a Dynatrace token", &["dt0c01.", "dt0s01.", "dt0s02."], Dotted, 80, 100, Dots(1)),
    rule("a Sentry token", &["sntrys_", "sntryu_", "sntryi_"], Base64, 40, LONG, Nothing),
    rule("a LaunchDarkly key", &["sdk-", "api-", "mob-"], Word, 36, 36, Holds(b"-4")),
    rule("a PostHog key", &["phx_", "phs_"], Alnum, 32, 64, Nothing),
    rule("a Honeycomb key", &["hcaik_", "hcbik_", "hcxik_"], Alnum, 50, 64, Nothing),
    rule("a Settlemint token", &["sm_aat_", "sm_pat_", "sm_sat_"], Alnum, 16, 16, Nothing),
    rule("an Adobe secret", &["p8e-"], Alnum, 32, 32, Nothing),
    rule("a ClickHouse key", &["4b1d"], Alnum, 38, 38, Random),
    rule("an Authress key", &["scauth_", "authress_"], Dotted, 60, 200, Dots(2)),
    rule("a Tailscale key", &["tskey-auth-", "tskey-api-", "tskey-client-", "tskey-webhook-"], Word, 20, 64, Nothing),
    rule("an ngrok token", &["ngrok_"], Word, 30, 64, Random),
    // Of many.
    rule("a JSON web token", &["eyJ"], Dotted, 24, LONG, Jwt),
    after("a bearer token", &["Bearer ", "bearer ", "BEARER "], Header, 20, Nothing),
    after("a password of basic authentication", &["Basic ", "basic "], Base64, 12, BasicAuth),
];

impl Demand {
    /// Whether a tail meets it.
    pub(super) fn is_met(self, tail: &[u8]) -> bool {
        let dots = || tail.split(|byte| *byte == b'.').count() - 1;
        match self {
            Nothing => true,
            NoWords => tail.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()),
            Random => looks_random(tail),
            Jwt => {
                let mut parts = tail.split(|byte| *byte == b'.');
                let long = |part: Option<&[u8]>| part.is_some_and(|part| part.len() >= 8);
                let (first, second, third) = (parts.next(), parts.next(), parts.next());
                long(first) && second.is_some_and(|part| part.starts_with(b"eyJ") || dots() == 4) && long(third)
            }
            Dots(least) => dots() >= least,
            BasicAuth => is_name_and_password(tail),
            Holds(text) => memchr::memmem::find(tail, text).is_some(),
        }
    }
}

fn is_name_and_password(text: &[u8]) -> bool {
    use base64::Engine as _;
    let bare: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'=').collect();
    let Ok(decoded) = base64::engine::general_purpose::STANDARD_NO_PAD.decode(bare) else { return false };
    let printable = decoded.iter().all(|byte| matches!(byte, 0x20..=0x7e));
    let colon = decoded.iter().position(|byte| *byte == b':');
    printable && colon.is_some_and(|at| at > 0 && at + 4 < decoded.len())
}

/// Words that stand in the names of what holds a secret.
pub(super) const NAMED: &[&str] = &[
    "secret",
    "token",
    "passw",
    "passphrase",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "privatekey",
    "private_key",
    "authkey",
    "auth_key",
    "credential",
    "account_key",
    "client_key",
    "signing_key",
    "encryption_key",
];

/// An example, a place for a value, or a value that was masked already.
pub(super) fn is_placeholder(text: &[u8]) -> bool {
    const WORDS: [&[u8]; 13] = [
        b"example",
        b"xxxx",
        b"your",
        b"changeme",
        b"change_me",
        b"change-me",
        b"placeholder",
        b"dummy",
        b"redacted",
        b"insert",
        b"replace",
        b"....",
        b"sample",
    ];
    let lower = text.to_ascii_lowercase();
    let first = lower.first();
    WORDS.iter().any(|word| memchr::memmem::find(&lower, word).is_some())
        || lower.iter().all(|byte| Some(byte) == first)
}

/// Whether a value looks drawn by lot: letters and digits in turns, and no words between them.
pub(super) fn looks_random(text: &[u8]) -> bool {
    let kind = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_alphabetic());
    let turns = text
        .windows(2)
        .filter(|pair| matches!((kind(&pair[0]), kind(&pair[1])), ((true, _), (_, true)) | ((_, true), (true, _))))
        .count();
    let mut seen = [0_u32; 256];
    for byte in text {
        seen[usize::from(*byte)] += 1;
    }
    let different = seen.iter().filter(|count| **count > 0).count();
    turns >= 3 && different >= 9 && !is_uuid(text)
}

/// `8-4-4-4-12` digits: a name, far more often than a secret.
fn is_uuid(text: &[u8]) -> bool {
    let parts: Vec<&[u8]> = text.split(|byte| *byte == b'-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.concat().iter().all(u8::is_ascii_hexdigit)
}
