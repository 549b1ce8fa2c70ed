"""What the server gives away, to those who ask nicely and to those who do not; and many who ask at once."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from research.benchmarks.app import load_test, send_request

pytestmark = pytest.mark.slow
ROOT_FILES = ("pyproject.toml", "README.md")


def fetch(url, path, method="GET", body=None, **headers):
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(errors="replace"), dict(answer.getheaders())
    connection.close()
    return found


def test_only_the_page_is_served(url, model_folder):
    from tests.app.conftest import ROOT

    files = ["/etc/passwd", str(model_folder / "config.json"), *(str(ROOT / name) for name in ROOT_FILES)]
    paths = [f"/gradio_api/{way}{file}" for file in files for way in ("file=", "file/", "proxy=", "stream/")]
    paths += [f"/file={file}" for file in files]
    up = ("../" * 12, "..%2f" * 12, "%2e%2e/" * 12, "..\\" * 12)
    paths += [f"/{folder}/{steps}etc/passwd" for folder in ("assets", "static", "static/img") for steps in up]
    paths += [f"/{name}" for name in ("docs", "redoc", "openapi.json", "monitoring", "logout", "pwa_icon", "login")]
    routes = (
        "info",
        "openapi.json",
        "api_info",
        "upload_progress",
        "token",
        "app_id",
        "runs",
        "deep_link",
        "dev/reload",
    )
    paths += [f"/gradio_api/{name}" for name in (*routes, "vibe-code", "call/explain", "mcp/sse")]
    for path in paths:
        status, text, _ = fetch(url, path)
        assert status in (400, 403, 404), path
        assert "root:" not in text
        assert "spinformer[" not in text
    for path in ("upload", "run/explain", "api/explain", "call/explain", "component_server", "vibe-edit", "stream/x"):
        assert fetch(url, f"/gradio_api/{path}", "POST", "{}")[0] == 404, path
    assert fetch(url, "/", "DELETE")[0] == 404


def test_the_page_keeps_to_itself(url, model_folder):
    status, text, headers = fetch(url, "/?deep_link=../../etc/passwd")
    assert status == 200
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "server" not in headers
    for secret in (str(model_folder), str(model_folder.parent), "/home/", "site-packages"):
        assert secret not in text
    assert "fonts.googleapis" not in text
    assert fetch(url, "/", Host="evil.example")[0] == 400
    assert '"analytics_enabled":false' in fetch(url, "/config")[1]


@pytest.mark.parametrize(
    "data",
    [
        [{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}, "a", 0.25, 64, -1, -1],
        [{"url": "http://127.0.0.1:1/", "meta": {"_type": "gradio.FileData"}}, "a", 0.25, 64, -1, -1],
        [["a"], "b", 0.25, 64, -1, -1],
        "text",
    ],
)
def test_data_are_texts_and_numbers(url, data):
    body = json.dumps({"data": data, "fn_index": 0, "session_hash": "x"})
    status, text, _ = fetch(url, "/gradio_api/queue/join", "POST", body)
    assert (status, json.loads(text)) == (400, {"detail": "Expected a list of texts, numbers and choices."})


def test_requests_have_a_size(url):
    body = json.dumps({"data": ["a" * 70_000], "fn_index": 0, "session_hash": "x"})
    status, text, _ = fetch(url, "/gradio_api/queue/join", "POST", body)
    assert status == 413
    assert "65536 bytes" in text


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("explain", ["a dog", "", 0.25, 64, -1, -1], "The hypothesis is empty"),
        ("explain", ["a dog", "x" * 601, 0.25, 64, -1, -1], "may have 600 characters; this one has 601"),
        ("watch", ["00", "hide patches", 0.3, 4, 0.9, 0], "28 x 28 grey pixels"),
        ("watch", ["ff" * 784, "hide patches", 1.5, 4, 0.9, 0], "from 0 to 0.9; got 1.5"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(url, name, data, said):
    answer = send_request(url, name, data)
    assert answer.startswith('<div class="message" role="alert">')
    assert said in answer


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("explain", ["a dog", "a cat", 0.25, 10_000, -1, -1]),
        ("explain", ["a dog", "a cat", "hot", 64, -1, -1]),
        ("explain", ["a dog"]),
        ("watch", ["ff" * 784, "burn", 0, 4, 1, 0]),
    ],
)
def test_what_the_page_cannot_send_is_refused_without_a_trace(url, name, data):
    try:
        said = send_request(url, name, data)
    except (OSError, ValueError) as error:
        said = str(error)
    assert 'class="result"' not in said
    for secret in ("Traceback", ".py", "site-packages", "spinformer/"):
        assert secret not in said


def test_twenty_visitors_at_once(url):
    send_request(url, "watch", ["ff" * 784, "hide patches", 0.3, 1, 0.9, 0])  # the attractor is trained before
    found = load_test(url, users=20, seconds=5)
    assert found["first_errors"] == []
    assert found["requests"] >= 40
    assert found["p95"] < 30
