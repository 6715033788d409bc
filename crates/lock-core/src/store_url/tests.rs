use super::*;

const FORM: UrlForm = UrlForm { what: "URL", host: "a server", remedy: "write db://HOST:PORT,HOST:PORT/NAME" };

fn read(url: &str) -> StoreUrl {
    StoreUrl::read(url, FORM).unwrap()
}

#[test]
fn urls_are_taken_apart() {
    let url = read("DB://app:se%23same@H1:7000,[::1]:7001, h3/orders%20?a=1&b=x%26+y&a=2&c");
    assert_eq!((url.scheme(), url.user(), url.secret()), ("db", Some("app"), Some("se#same")));
    let hosts: Vec<_> = url.hosts().iter().map(UrlHost::to_string).collect();
    assert_eq!(hosts, ["h1:7000", "[::1]:7001", "h3"]);
    assert_eq!(
        (url.path(), url.option("b"), url.option("c"), url.option("d")),
        ("/orders ", Some("x& y"), Some(""), None)
    );
    assert_eq!(url.all("a").collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(format!("{url:?}"), "db://***@H1:7000,[::1]:7001, h3/orders%20");
    let socket = read("unix:///run/a.sock?x=1");
    assert_eq!((socket.hosts(), socket.path(), socket.shown()), (&[][..], "/run/a.sock", "unix:///run/a.sock"));
    assert_eq!((read("db://:x@h").user(), read("db://x@h").secret(), read("db://@h").user()), (None, None, None));
    assert_eq!(url.of_host("kv", &url.hosts()[1]), "kv://app:se%23same@[::1]:7001/orders%20");
    let lone = read("db://h");
    assert_eq!(lone.of_host("kv", &lone.hosts()[0]), "kv://h/");
    assert_eq!(StoreUrl::scheme_of("DB+x://h"), "db+x");
    assert_eq!(StoreUrl::scheme_of("h"), "");
}

#[test]
fn a_list_of_hosts_is_read_like_a_url() {
    let hosts = ["h1".to_owned(), "[::1]:2".to_owned()];
    let url = StoreUrl::of_hosts("db", &hosts, "/orders", FORM).unwrap();
    let url = url.with_login(Some("u".into()), Some("ses@me".into())).with_option("pass", Some("sesame".into()));
    assert_eq!((url.secret(), url.option("pass"), url.hosts()[1].port), (Some("ses@me"), Some("sesame"), Some(2)));
    assert_eq!(format!("{url:?}"), "db://h1,[::1]:2/orders");
    let refusal = StoreUrl::of_hosts("db", &["u:sesame@h".to_owned()], "", FORM).unwrap_err().to_string();
    assert!(refusal.contains("fields of their own") && !refusal.contains("sesame"), "{refusal}");
}

#[test]
fn what_is_wrong_is_refused_without_the_secret() {
    for (url, expected) in [
        ("sesame", "\"(hidden)\" is not valid: it has no scheme"),
        ("db:sesame@h", "no scheme"),
        ("u:sesame@h://x", "no scheme"),
        ("db://u:sesame@h1,,h2", "\"db://...\" is not valid: it names no host; write db://HOST"),
        ("db://:7000", "names no host"),
        ("db://:sesame", "its port is not a number"),
        ("db://u:sesame@h:x", "the address of a server is not valid: its port is not a number"),
        ("db://u:sesame@h:70000", "its port is not a number up to 65535"),
        ("db://u:sesame@::1", "an IPv6 address needs brackets"),
        ("db://u:sesame@[h]", "no IPv6 address"),
        ("db://u:sesame@[::1]7", "only a port can follow"),
        ("db://u:sesame@h^1", "a character that no host has"),
        ("db://u:sesame/1@h", "\"db://...\" is not valid: it has an @ after the hosts"),
        ("db://u:sesame?1@h", "? as %3F and # as %23"),
        ("db://u:sesame#1@h", "? as %3F and # as %23"),
        ("db://u:1@h/sesame@x", "write / in a password as %2F"),
        ("db://u:sesame@h#x", "it has a fragment"),
        ("db://u:sesame%FF@h", "no UTF-8"),
    ] {
        let refusal = StoreUrl::read(url, FORM).unwrap_err().to_string();
        assert!(refusal.contains(expected) && !refusal.contains("sesame"), "{url}: {refusal}");
    }
}

#[test]
fn options_are_known_and_given_once() {
    for (query, expected) in [
        ("c=sesame", "its option \"c\" is unknown; allowed: r, a, pass"),
        ("a=1&a=sesame", "its option \"a\" is given twice"),
        ("pass=x&sesame=1", "it has an unknown option; allowed: r, a, pass; write ? as %3F, and & as %26"),
        ("x@sesame=1", "it has an unknown option"),
        ("ses-ame%20sesame", "it has an unknown option"),
    ] {
        let refusal = read(&format!("db://h?{query}")).check_options(&["r"], &["a", "pass"]).unwrap_err().to_string();
        assert!(refusal.contains(expected) && !refusal.contains("sesame"), "{query}: {refusal}");
    }
    assert!(read("db://h?r=1&r=2&a=3").check_options(&["r"], &["a"]).is_ok());
}
