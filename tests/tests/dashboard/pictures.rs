//! Pictures of the pages, beside those that were looked at and kept: `pictures/*.webp`. One of them is the
//! picture of the README.
//!
//! `DASHBOARD_PICTURES=write cargo suite dashboard -- pages_look` writes them anew; look at each before it is
//! committed. A test that fails leaves the picture that it saw in cargo's folder for tests, and names it.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use tests::browser::Tab;

use crate::fixed_api::{CHECKOUT, Fleet, serve};

/// Timers of the page run when the test says so: a sparkline has the same number of values each time.
const TIMERS: &str = "window.setInterval = (turn) => { window.turnOfTest = turn; return 0; }";
const MINUTE_OF_TURNS: &str = "for (let second = 0; second < 60; second += 1) window.turnOfTest()";
const TWO_FRAMES: &str =
    "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))";

/// What the pictures differ by: the part of their cells of 8 × 8 pixels in which a colour differs by more
/// than an eighth of its range. Letters of another version of a font differ in few cells by as much; a line,
/// a mark or a row that is missing differs in more.
const DIFFERENCE: &str = r#"(async (one, other) => {
  const cells = async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes], { type: "image/webp" }));
    const [width, height] = [Math.ceil(picture.width / 8), Math.ceil(picture.height / 8)];
    const canvas = new OffscreenCanvas(width, height).getContext("2d");
    canvas.imageSmoothingQuality = "high";
    canvas.drawImage(picture, 0, 0, width, height);
    return { size: `${picture.width}x${picture.height}`, values: canvas.getImageData(0, 0, width, height).data };
  };
  const [a, b] = [await cells(one), await cells(other)];
  if (a.size !== b.size) return 1;
  let differing = 0;
  for (let cell = 0; cell < a.values.length; cell += 4) {
    const far = [0, 1, 2].some((colour) => Math.abs(a.values[cell + colour] - b.values[cell + colour]) > 32);
    if (far) differing += 1;
  }
  return differing / (a.values.length / 4);
})"#;
/// A picture may differ in so many of its cells.
const DIFFERENCE_MAX: f64 = 0.005;

/// A picture of a page.
struct Scene {
    name: &'static str,
    fleet: Fleet,
    page: &'static str,
    scheme: &'static str,
    size: (u32, u32),
    /// The medium: the screen where it is empty, or `print`.
    medium: &'static str,
    /// The JavaScript that does on the page what a person would do there.
    steps: &'static str,
    /// The expression that is true once the page shows the outcome of the steps.
    until: &'static str,
}

const SCENE: Scene = Scene {
    name: "",
    fleet: Fleet::Usual,
    page: "#/",
    scheme: "light",
    size: (1280, 760),
    medium: "",
    steps: MINUTE_OF_TURNS,
    until: "document.querySelectorAll('tbody tr').length === 6",
};

const REVISION: Scene = Scene {
    page: "#/revision/shop/service/checkout",
    steps: "",
    until: "document.querySelector('svg.chart path.line.ready') && document.querySelector('.forecast dl') \
            ? true : false",
    ..SCENE
};

const DAY: Scene = Scene {
    steps: "document.querySelector('input[value=\"24h\"]').click()",
    until: "document.querySelector('svg.chart path.line.usual') !== null",
    ..REVISION
};

/// What a person types who looks for requests that wait.
const WAITING: &str = "(() => {
  for (let second = 0; second < 60; second += 1) window.turnOfTest();
  const filter = document.querySelector('input[type=search]');
  filter.value = 'waiting>0';
  filter.dispatchEvent(new Event('input'));
})()";

const SCENES: [Scene; 15] = [
    Scene { name: "fleet-light", ..SCENE },
    Scene { name: "fleet-dark-360", scheme: "dark", size: (360, 760), ..SCENE },
    Scene {
        name: "fleet-empty",
        fleet: Fleet::Empty,
        size: (1280, 300),
        until: "document.querySelector('caption')?.textContent === 'No revision yet'",
        ..SCENE
    },
    Scene {
        name: "fleet-one",
        fleet: Fleet::One,
        size: (1280, 300),
        until: "document.querySelectorAll('tbody tr').length === 1",
        ..SCENE
    },
    Scene {
        name: "fleet-waiting-dark",
        scheme: "dark",
        size: (1280, 400),
        steps: WAITING,
        until: "document.querySelectorAll('tbody tr').length === 2",
        ..SCENE
    },
    Scene {
        name: "fleet-rebuilt-360",
        fleet: Fleet::Rebuilt,
        size: (360, 760),
        until: "document.getElementById('state').textContent.includes('was rebuilt')",
        ..SCENE
    },
    Scene {
        name: "fleet-thousand-4k-dark",
        fleet: Fleet::Thousand,
        scheme: "dark",
        size: (3840, 2160),
        until: "document.querySelectorAll('tbody tr').length === 1000",
        ..SCENE
    },
    // The picture of the README.
    Scene { name: "revision-day", size: (1280, 880), ..DAY },
    Scene { name: "revision-day-4k-dark", scheme: "dark", size: (3840, 2160), ..DAY },
    Scene { name: "revision-day-360", size: (360, 1500), ..DAY },
    Scene { name: "revision-day-print", scheme: "dark", size: (720, 1000), medium: "print", ..DAY },
    Scene { name: "revision-panic-dark", scheme: "dark", size: (1280, 1500), ..REVISION },
    Scene { name: "cold-starts-dark", page: "#/cold-starts", scheme: "dark", steps: "", ..SCENE },
    Scene { name: "cost-light", page: "#/cost", steps: "", ..SCENE },
    Scene {
        name: "problems-light",
        page: "#/problems",
        steps: "",
        until: "document.querySelectorAll('.problems > li').length === 3",
        ..SCENE
    },
];

impl Scene {
    /// The picture, as the browser writes it: `WebP` in base 64.
    async fn taken(&self, tab: &mut Tab) -> String {
        let address = serve(self.fleet).await;
        tab.show_in(self.medium, self.scheme, self.size).await;
        tab.load(&format!("http://{address}/{}", self.page)).await;
        tab.until("document.getElementById('state')?.textContent.startsWith('live') === true").await;
        if self.page == REVISION.page {
            tab.until(REVISION.until).await;
        }
        tab.value(self.steps).await;
        tab.until(self.until).await;
        // What was drawn last is on the screen two frames later.
        tab.value(TWO_FRAMES).await;
        assert_eq!(tab.complaints().await, Vec::<String>::new(), "{}", self.name);
        self.shown(tab).await
    }

    /// What the tab shows now; a wall in half of its size.
    async fn shown(&self, tab: &mut Tab) -> String {
        let (width, height) = self.size;
        let scale = if width > 2_000 { 0.5 } else { 1.0 };
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": scale});
        let asked = json!({"format": "webp", "quality": 80, "clip": clip});
        let shown = tab.tell("Page.captureScreenshot", asked).await;
        shown["data"].as_str().expect("a picture").to_owned()
    }

    fn kept(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dashboard/pictures");
        folder.join(format!("{}.webp", self.name))
    }
}

/// The part of the cells in which two pictures differ.
async fn difference(tab: &mut Tab, one: &str, other: &str) -> f64 {
    tab.go("about:blank").await;
    let asked = format!("{DIFFERENCE}({}, {})", json!(one), json!(other));
    tab.value(&asked).await.as_f64().expect("a number")
}

#[tokio::test]
async fn pages_look_as_they_did_when_a_person_looked_at_them() {
    assert!(REVISION.page.ends_with(CHECKOUT));
    let is_written = std::env::var("DASHBOARD_PICTURES").is_ok_and(|order| order == "write");
    let mut tab = Tab::open().await;
    tab.tell("Page.addScriptToEvaluateOnNewDocument", json!({"source": TIMERS})).await;
    let mut differing = Vec::new();
    for scene in &SCENES {
        let taken = scene.taken(&mut tab).await;
        if is_written {
            write(&scene.kept(), &taken);
            continue;
        }
        let kept = std::fs::read(scene.kept()).unwrap_or_else(|error| {
            panic!("{}: {error}; DASHBOARD_PICTURES=write makes it", scene.kept().display())
        });
        let part = difference(&mut tab, &BASE64_STANDARD.encode(kept), &taken).await;
        if part > DIFFERENCE_MAX {
            let seen = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.webp", scene.name));
            write(&seen, &taken);
            differing.push(format!("{}: {:.1} % of it; seen: {}", scene.name, part * 100.0, seen.display()));
        }
    }
    assert!(differing.is_empty(), "pictures differ:\n{}", differing.join("\n"));
}

#[tokio::test]
async fn a_line_that_is_missing_in_a_picture_is_a_difference() {
    let mut tab = Tab::open().await;
    let whole = DAY.taken(&mut tab).await;
    // The page draws its lines anew each 2 s, so a style hides this one.
    let hidden = "{ const sheet = new CSSStyleSheet(); sheet.replaceSync('.line.demand { display: none; }'); \
                  document.adoptedStyleSheets = [sheet]; }";
    tab.value(hidden).await;
    tab.value(TWO_FRAMES).await;
    let seen = DAY.shown(&mut tab).await;
    let part = difference(&mut tab, &whole, &seen).await;
    assert!(part > DIFFERENCE_MAX, "{part}");
    assert_eq!(difference(&mut tab, &whole, &whole).await, 0.0);
}

fn write(path: &Path, picture: &str) {
    let picture = BASE64_STANDARD.decode(picture).expect("base 64");
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
    std::fs::write(path, picture).expect("it can be written");
}
