use http::{Method, Version};

use super::*;

fn line(template: &str, headers: &[(&'static str, &'static str)]) -> String {
    let template = RequestLogTemplate::parse(template).expect("it is understood");
    let revision = LoggedRevision { name: "hello-00001".to_owned(), ..LoggedRevision::default() };
    let log = RequestLog::new(template, revision, LogFormat::Text, Counter::default());
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).parse().expect("a name"), (*value).parse().expect("a value")))
        .collect();
    let request = LoggedRequest {
        method: &Method::POST,
        uri: &"/a?b=c&d".parse().expect("a target"),
        version: Version::HTTP_2,
        headers: &headers,
        host: "h.example.com",
        remote: ([10, 0, 0, 1], 4711).into(),
        content_length: None,
    };
    let mut begun = log.begin(request);
    begun.answered(503);
    begun.sent(10);
    begun.sent(32);
    begun.ended_after(Duration::from_millis(1500));
    let rendered = begun.render();
    // It is not to be written by a test.
    std::mem::forget(begun);
    rendered
}

#[test]
fn knatives_template_gives_a_json_object_whatever_clients_say() {
    let agent = ("user-agent", r#"a"b\c'd	e"#);
    let trace = ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let text = line(REQUEST_LOG_TEMPLATE, &[agent, trace]);
    assert_eq!(
        text,
        r#"{"httpRequest": {"requestMethod": "POST", "requestUrl": "/a?b\u003Dc\u0026d", "requestSize": "-1", "#.to_owned()
            + r#""status": 503, "responseSize": "42", "userAgent": "a\"b\\c\u0027d\u0009e", "#
            + r#""remoteIp": "10.0.0.1:4711", "serverIp": "", "referer": "", "latency": "1.5s", "#
            + r#""protocol": "HTTP/2.0"}, "traceId": "0af7651916cd43dd8448eb211c80319c"}"#
            + "\n"
    );
}

#[test]
fn fields_stand_where_the_template_has_them() {
    let headers = [("x-a", "1"), ("x-b3-traceid", "b3")];
    for (template, expected) in [
        ("no field", "no field\n"),
        ("a line\n", "a line\n"),
        ("{{.Request.Host}} {{ .Revision.Name }}", "h.example.com hello-00001\n"),
        ("{{.Request.URL.RawQuery | js}}", "b\\u003Dc\\u0026d\n"),
        ("{{.Response.Code}}{{.Response.Code}}", "503503\n"),
        (r#"{{index .Request.Header "X-A"}} {{.Request.Header.Get "x-a"}}"#, "[1] 1\n"),
        (r#"{{index .Request.Header "X-None"}}"#, "[]\n"),
        ("{{.TraceID}}", "b3\n"),
    ] {
        assert_eq!(line(template, &headers), expected, "{template}");
    }
}

#[test]
fn a_trace_is_the_second_part_of_a_whole_traceparent() {
    for (traceparent, expected) in [("00-t-p-01", "t"), ("00-t-p", "t"), ("00", ""), ("00-t", ""), ("", "")] {
        assert_eq!(line("{{.TraceID}}", &[("traceparent", traceparent)]), format!("{expected}\n"));
    }
}

#[test]
fn an_unknown_part_of_a_template_is_refused_with_its_column() {
    for (template, column) in [
        ("{{.Request.Foo}}", 1),
        ("ä {{if .Request.Method}}", 3),
        ("{{.Request.Method}} {{printf \"%s\" .Request.Host}}", 21),
        ("{{.Request.Method | html}}", 1),
        ("a {{.Request.Method", 3),
        ("{{}}", 1),
        (r#"{{index .Request.Header "}}"#, 1),
    ] {
        let problem = RequestLogTemplate::parse(template).expect_err(template);
        assert_eq!(problem.column, column, "{template}: {problem}");
    }
}

#[test]
fn a_log_line_stands_in_an_object_when_all_lines_are_json() {
    let text = within_json("activator-1", "{\"a\": \"b\"}\n");
    let (_, rest) = text.split_once("\"source\":").expect("a source");
    assert_eq!(rest, "\"activator-1\",\"stream\":\"request-log\",\"line\":\"{\\\"a\\\": \\\"b\\\"}\"}\n");
}

/// However much a client says, each line stays one that its readers take whole, and is an object to the end.
#[test]
fn a_line_is_never_longer_than_its_readers_take() {
    for value in ["x".repeat(100_000), "&".repeat(50_000), "\"\\".repeat(30_000), "\u{e9}".repeat(40_000)] {
        let value: &'static str = Box::leak(value.into_boxed_str());
        for headers in [&[("user-agent", value)][..], &[("user-agent", value), ("referer", value)]] {
            let text = line(REQUEST_LOG_TEMPLATE, headers);
            assert!(text.len() <= 8 * 1024, "{} bytes", text.len());
            let object: serde_json::Value = serde_json::from_str(&text).expect("an object");
            assert_eq!(object["httpRequest"]["status"], 503);
            let wrapped = within_json("pod", &text);
            assert!(wrapped.len() <= 8 * 1024 && wrapped.ends_with("\"}\n"), "{} bytes", wrapped.len());
            let object: serde_json::Value = serde_json::from_str(&wrapped).expect("an object");
            assert_eq!(object["stream"], "request-log");
        }
    }
    let text = line("{{.Request.UserAgent}}", &[("user-agent", "short")]);
    assert_eq!(text, "short\n", "and nothing else is cut");
}
