"""Links that lead nowhere are named."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import links  # noqa: E402


def test_missing_pages_pictures_and_anchors_are_named(tmp_path):
    (tmp_path / "guides").mkdir()
    (tmp_path / "picture one.png").touch()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">T</h1><a href="#top"></a><a href="guides/a.html#here"></a><a href="guides/"></a>'
        '<img src="picture%20one.png"><a href="https://example.org/x"></a><a href="mailto:a@b"></a>'
    )
    (tmp_path / "guides" / "index.html").write_text("<p>")
    (tmp_path / "guides" / "a.html").write_text('<h2 id="here">H</h2><a href="../index.html">up</a>')
    assert links.dead_links(tmp_path) == []
    (tmp_path / "guides" / "a.html").write_text('<img src="b.png"><a href="#there"></a><a href="../gone.html"></a>')
    inside = [f"guides/a.html: {link}" for link in ("#there", "../gone.html", "b.png")]
    assert links.dead_links(tmp_path) == [*inside, "index.html: guides/a.html#here"]
