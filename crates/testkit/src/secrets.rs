//! Secrets of known shapes, and what only looks like one. All are made anew from their parts, so that no file holds a
//! secret of a real shape and no scanner is alarmed.

/// A made-up secret.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Whose shape it has.
    pub shape: &'static str,
    /// All of it.
    pub text: String,
    /// The part that nobody may see any of.
    pub core: String,
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Numbers that look drawn by lot and are the same every time.
#[derive(Debug)]
struct Lot(u64);

impl Lot {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0)
    }

    fn text(&mut self, alphabet: &str, length: usize) -> String {
        let bytes = alphabet.as_bytes();
        let mut text: String = (0..length).map(|_| char::from(bytes[self.next() % bytes.len()])).collect();
        // Whatever the lot says, it holds digits and letters in turns.
        if length >= 12 && alphabet.contains('2') && alphabet.contains(['a', 'A']) {
            let letter = if alphabet.contains('a') { "a" } else { "A" };
            text.replace_range(4..8, &format!("2{letter}3{letter}"));
        }
        text
    }
}

/// A shape: whose, how it begins (in two parts), the letters of the rest and its length.
type Shape = (&'static str, &'static str, &'static str, &'static str, usize);

const SHAPES: &[Shape] = &[
    ("Anthropic", "sk-a", "nt-api03-", ALNUM, 95),
    ("Anthropic admin", "sk-a", "nt-admin01-", ALNUM, 95),
    ("OpenAI project", "sk-p", "roj-", ALNUM, 120),
    ("OpenAI", "s", "k-", ALNUM, 48),
    ("OpenRouter", "sk-o", "r-v1-", HEX, 64),
    ("Groq", "gs", "k_", ALNUM, 52),
    ("xAI", "xa", "i-", ALNUM, 80),
    ("Perplexity", "ppl", "x-", ALNUM, 48),
    ("Replicate", "r", "8_", ALNUM, 37),
    ("Hugging Face", "h", "f_", ALNUM, 34),
    ("LangSmith", "lsv2", "_pt_", HEX, 43),
    ("NVIDIA", "nva", "pi-", ALNUM, 64),
    ("AWS", "AK", "IA", UPPER, 16),
    ("AWS session", "AS", "IA", UPPER, 16),
    ("Google", "AI", "za", ALNUM, 35),
    ("Google OAuth", "GOC", "SPX-", ALNUM, 28),
    ("Google session", "ya", "29.", ALNUM, 60),
    ("Alibaba", "LT", "AI", ALNUM, 20),
    ("DigitalOcean", "dop", "_v1_", HEX, 64),
    ("Databricks", "da", "pi", HEX, 32),
    ("Heroku", "HRKU", "-AA", ALNUM, 58),
    ("Fly.io", "fo", "1_", ALNUM, 43),
    ("PlanetScale", "pscale", "_tkn_", ALNUM, 43),
    ("Netlify", "nf", "p_", ALNUM, 36),
    ("Pulumi", "pu", "l-", HEX, 40),
    ("Doppler", "dp.", "pt.", ALNUM, 43),
    ("Vault", "hv", "s.", ALNUM, 95),
    ("OpenShift", "sha", "256~", ALNUM, 43),
    ("GitHub", "gh", "p_", ALNUM, 36),
    ("GitHub OAuth", "gh", "o_", ALNUM, 36),
    ("GitHub app", "gh", "s_", ALNUM, 36),
    ("GitHub fine-grained", "github", "_pat_", ALNUM, 82),
    ("GitLab", "gl", "pat-", ALNUM, 20),
    ("GitLab deploy", "gl", "dt-", ALNUM, 20),
    ("GitLab runner", "gl", "rt-", ALNUM, 20),
    ("Bitbucket", "AT", "BB", ALNUM, 32),
    ("Atlassian", "ATATT", "3xFfG", ALNUM, 180),
    ("npm", "np", "m_", ALNUM, 36),
    ("PyPI", "pypi-", "AgEIcHlwaS5vcmc", ALNUM, 100),
    ("RubyGems", "ruby", "gems_", HEX, 48),
    ("Clojars", "CLO", "JARS_", LOWER, 60),
    ("Docker Hub", "dckr", "_pat_", ALNUM, 27),
    ("JFrog", "AK", "Cp", ALNUM, 69),
    ("Prefect", "pn", "u_", ALNUM, 36),
    ("ReadMe", "rd", "me_", LOWER, 70),
    ("SonarQube", "sq", "u_", HEX, 40),
    ("Figma", "fi", "gd_", ALNUM, 40),
    ("Linear", "lin", "_api_", ALNUM, 40),
    ("Notion", "nt", "n_", ALNUM, 46),
    ("Slack bot", "xo", "xb-", "0123456789", 24),
    ("Slack user", "xo", "xp-", "0123456789", 40),
    ("Brevo", "xke", "ysib-", HEX, 64),
    ("Twilio", "S", "K", HEX, 32),
    ("Contentful", "CF", "PAT-", ALNUM, 43),
    ("Stripe live", "sk", "_live_", ALNUM, 24),
    ("Stripe test", "sk", "_test_", ALNUM, 24),
    ("Stripe restricted", "rk", "_live_", ALNUM, 24),
    ("Stripe signing", "whs", "ec_", ALNUM, 32),
    ("Shopify", "shp", "at_", HEX, 32),
    ("Shippo", "shippo", "_live_", HEX, 40),
    ("EasyPost", "EZ", "AK", ALNUM, 54),
    ("Duffel", "duffel", "_live_", ALNUM, 43),
    ("Razorpay", "rzp", "_live_", ALNUM, 14),
    ("Facebook", "EA", "AC", ALNUM, 120),
    ("Grafana", "gl", "c_", ALNUM, 64),
    ("New Relic", "NR", "AK-", UPPER, 27),
    ("Sentry", "snt", "ryu_", HEX, 64),
    ("PostHog", "ph", "x_", ALNUM, 43),
    ("Tailscale", "tskey", "-auth-", ALNUM, 30),
    ("age", "AGE-SECRET", "-KEY-1", UPPER, 58),
];

/// Of each shape several.
pub fn corpus() -> Vec<Sample> {
    let mut lot = Lot(0x5eed_1234_9876_abcd);
    let mut all = Vec::new();
    for round in 0..3 {
        for (shape, first, second, alphabet, length) in SHAPES {
            let core = lot.text(alphabet, *length);
            all.push(Sample { shape, text: format!("{first}{second}{core}"), core });
        }
        all.extend(composed(&mut lot, round));
    }
    all
}

/// Those that are more than a beginning and a rest.
fn composed(lot: &mut Lot, round: usize) -> Vec<Sample> {
    let sample = |shape, core: String, text: String| Sample { shape, text, core };
    let mut all = Vec::new();
    let (head, body, sign) = (lot.text(ALNUM, 20), lot.text(ALNUM, 60), lot.text(ALNUM, 43));
    all.push(sample("JSON web token", sign.clone(), format!("{}{head}.{}{body}.{sign}", "ey".to_owned() + "J", "eyJ")));
    let core = lot.text(ALNUM, 66 - 23);
    all.push(sample("SendGrid", core.clone(), format!("{}G.{}.{core}", "S", lot.text(ALNUM, 22))));
    let core = lot.text(ALNUM, 24);
    all.push(sample(
        "Slack web hook",
        core.clone(),
        format!("https://hooks.{}/services/T0A1B2C3D/B0A1B2C3D/{core}", "slack.com"),
    ));
    let core = lot.text(ALNUM, 68);
    all.push(sample(
        "Discord web hook",
        core.clone(),
        format!("https://discord.com/api/{}/123456789012345678/{core}", "webhooks"),
    ));
    let core = lot.text(BASE64, 86);
    all.push(sample("Azure storage", core.clone(), format!("Account{}={core}==", "Key")));
    let core = lot.text(ALNUM, 40);
    all.push(sample("bearer", core.clone(), format!("Authorization: {} {core}", "Bearer")));
    let core = lot.text(ALNUM, 18);
    all.push(sample("address", core.clone(), format!("postgres://app:{core}@db.internal:5432/app")));
    let core = lot.text(HEX, 40);
    all.push(sample("assigned in a shell", core.clone(), format!("DATADOG_API_{}={core}", "KEY")));
    let core = lot.text(ALNUM, 40);
    all.push(sample("assigned in code", core.clone(), format!("\"client_{}\": \"{core}\"", "secret")));
    let lines: Vec<String> = (0..8).map(|_| lot.text(BASE64, 64)).collect();
    let kind = ["RSA ", "OPENSSH ", "EC "][round % 3];
    let core = lines[3].clone();
    let text = format!("-----BEGIN {kind}{1} KEY-----\n{0}\n-----END {kind}{1} KEY-----", lines.join("\n"), "PRIVATE");
    all.push(sample("private key", core, text));
    all
}

/// What looks like a secret and is none, each with its name.
pub fn look_alikes() -> Vec<(&'static str, String)> {
    let mut lot = Lot(0x0dd5_ba11_cafe_f00d);
    let mut all = Vec::new();
    for _ in 0..8 {
        let uuid = [8, 4, 4, 4, 12].map(|length| lot.text(HEX, length)).join("-");
        all.push(("commit", format!("commit {}", lot.text(HEX, 40))));
        all.push(("short commit", format!("fixed in {} yesterday", lot.text(HEX, 7))));
        all.push(("SHA-256", format!("sha256:{}", lot.text(HEX, 64))));
        all.push(("MD5", format!("etag \"{}\"", lot.text(HEX, 32))));
        all.push(("UUID", format!("request id {uuid}, session_token_id: {uuid}")));
        all.push((
            "Cargo.lock",
            format!("name = \"serde\"\nversion = \"1.0.229\"\nchecksum = \"{}\"\n", lot.text(HEX, 64)),
        ));
        all.push(("package-lock", format!("\"integrity\": \"sha512-{}==\",\n", lot.text(BASE64, 86))));
        all.push(("yarn.lock", format!("resolved \"https://registry.example/x/-/x-1.tgz#{}\"", lot.text(HEX, 40))));
        all.push(("go.sum", format!("example.org/x v1.2.3 h1:{}=", lot.text(BASE64, 43))));
        all.push(("picture", format!("<img src=\"data:image/png;base64,iVBORw0KGgo{}=\">", lot.text(BASE64, 900))));
        all.push((
            "source map",
            format!("//# sourceMappingURL=data:application/json;base64,eyJ{}", lot.text(ALNUM, 300)),
        ));
        all.push(("font", format!("src: url(data:font/woff2;base64,d09GMg{}) format('woff2')", lot.text(BASE64, 400))));
        all.push(("public key", format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{} me@host", lot.text(ALNUM, 43))));
        all.push(("nix hash", format!("sha256-{}=", lot.text(BASE64, 43))));
    }
    for text in [
        "ANTHROPIC_API_KEY=your-key-here",
        "export OPENAI_API_KEY=<your key>",
        "api_key: \"xxxxxxxxxxxxxxxxxxxxxxxx\"",
        "password = \"${DB_PASSWORD}\"",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "DATABASE_URL=postgres://$USER:$PASSWORD@localhost/app",
        "postgres://<user>:<password>@<host>/<db>",
        "const token = await getTokenFromRequest2(request)",
        "let secret_name = \"projects/my-project/secrets/db\"",
        "let access_token: Option<AccessTokenV2Wrapper3> = None;",
        "Authorization: Bearer <token>",
        "Authorization: Bearer your-access-token-goes-here",
        "class=\"sk-circle-fade-dot sk-cube-grid-item\"",
        "kebab-case-task-skeleton-for-a-lamp and sk-learn-like-things-in-words",
        "if line.starts_with(\"-----BEGIN RSA PRIVATE KEY-----\") { return true }",
        "the marker -----BEGIN PRIVATE KEY----- begins a key",
        "eyJhbGciOiJIUzI1NiJ9 alone is a header",
        "npm_config_registry=https://registry.npmjs.org/ npm_lifecycle_event=test",
        "max_tokens: 200000, input_tokens=1234567890123456, total_tokens: 99",
        "the AKIA prefix, the ghp_ prefix, the sk- prefix and xoxb- are looked for",
        "GET https://example.org:8443/a/b@c?d=e:f@g",
        "git@github.com:owner/name.git and ssh://git@host:22/x",
        "Basic usage: see the Basic concepts page of the documentation",
        "version 1.0-abcdef and pat.example.com and API-DOCUMENTATION-PAGE",
    ] {
        all.push(("text", text.to_owned()));
    }
    all
}
