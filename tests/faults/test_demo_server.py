"""Many questions through the demo's server: right answers, flat memory, and no file left behind."""

import contextlib
import html
import json
import re
import signal
import subprocess
import sys
import urllib.request
import uuid

import pytest

from data.vqa.data_folder import DataFolder
from scripts.cluster.process_samples import find_growth, take_sample
from scripts.demo.model_list import ModelList
from scripts.demo.session import start_session
from tests.faults.length import read_length
from tests.faults.runs import environment
from tests.small_models import QUIET
from tests.small_runs import ALONE, HANG, ROOT

NUM_QUESTIONS = 20  # in CI
STEADY = 200  # questions from which on memory can be judged; caches fill before
TOLERANCE = 2.0  # percent
TEXTS = ["What color is the circle?", "How many squares are there?", "Is there a <b>star</b>?"]

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def pytest_generate_tests(metafunc):
    if "num_questions" in metafunc.fixturenames:
        number = read_length(metafunc.config).questions or NUM_QUESTIONS
        metafunc.parametrize("num_questions", [number])


class Visitor:
    """What a browser does: the cookie, an upload, a question through the queue."""

    def __init__(self, address):
        self.server, self.session = address.partition("/?token=")[0], uuid.uuid4().hex
        with urllib.request.urlopen(address, timeout=HANG) as answer:
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        config = json.loads(self.request("/config"))
        (asking, *_) = [
            each for each in config["dependencies"] if each["api_name"].startswith("do_ask")
        ]
        self.event, self.outputs = asking["id"], asking["outputs"]
        places = {each["props"].get("elem_id"): each["id"] for each in config["components"]}
        self.answers = self.outputs.index(places["answers"])

    def request(self, path, body=None, kind="application/json"):
        headers = {"Cookie": self.cookie, "Content-Type": kind}
        asked = urllib.request.Request(self.server + path, body, headers)
        with urllib.request.urlopen(asked, timeout=HANG) as answer:
            return answer.read()

    def upload(self, picture):
        bound = uuid.uuid4().hex
        head = (
            f'--{bound}\r\nContent-Disposition: form-data; name="files"; filename="p.png"\r\n\r\n'
        )
        body = head.encode() + picture.read_bytes() + f"\r\n--{bound}--\r\n".encode()
        kind = f"multipart/form-data; boundary={bound}"
        (path,) = json.loads(self.request("/gradio_api/upload", body, kind))
        return {"path": path, "meta": {"_type": "gradio.FileData"}}

    def ask(self, picture, question, run, lam):
        """The HTML of the answers."""
        data = [None, None, lam, self.upload(picture), question, run]
        body = {"data": data, "fn_index": self.event, "session_hash": self.session}
        self.request("/gradio_api/queue/join", json.dumps(body).encode())
        stream = self.request(f"/gradio_api/queue/data?session_hash={self.session}").decode()
        messages = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data")]
        (done,) = [each for each in messages if each["msg"] == "process_completed"]
        assert done["success"], done
        return done["output"]["data"][self.answers]


@contextlib.contextmanager
def serving(run, temporary):
    """The command itself; its process and the address that it prints."""
    words = [f"checkpoint={run}", "port=0", "num_examples=0", *QUIET]
    variables = {"TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.demo", *words],
        cwd=ROOT,
        env=environment(uuid.uuid4().hex, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        printed = process.stdout.readline()
        assert printed.startswith("open http://127.0.0.1:"), printed + process.stdout.read()
        yield process, printed.split()[1]
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=HANG)
        assert rest.endswith("interrupted\n"), rest
    finally:
        process.kill()
        process.wait()


def read_answers(shown):
    return [
        html.unescape(name) for name in re.findall(r'<tr><th>(.*?)</th><td class="bar">', shown)
    ]


def test_many_questions_through_the_server(num_questions, peaky_run, small_dataset, tmp_path):
    pytest.importorskip("gradio")
    pictures = sorted(DataFolder(small_dataset).image_folder("val").iterdir())
    models = ModelList({peaky_run.name: peaky_run / "best.pt"}, ALONE.device, changed={})
    expected, samples = {}, []
    with serving(peaky_run, tmp_path) as (process, address):
        visitor = Visitor(address)
        for number in range(num_questions):
            asked = pictures[number % len(pictures)], TEXTS[number % len(TEXTS)]
            if asked not in expected:
                session = start_session(models, str(asked[0]), asked[1], peaky_run.name)
                answer, lam = session.forward.answer(), session.forward.lam
                expected[asked] = read_answers(session.show(answer)[1])
            assert read_answers(visitor.ask(*asked, peaky_run.name, lam)) == expected[asked]
            samples.append(take_sample(process.pid, number))
        assert len(expected[asked]) == 5
    assert len({tuple(names) for names in expected.values()}) > 1
    assert list(tmp_path.iterdir()) == []
    print(samples[0], samples[-1], sep="\n")
    growth = find_growth(samples, 0.2, TOLERANCE) if num_questions >= STEADY else []
    # the server's pool has a thread more when two requests meet
    assert not [problem for problem in growth if not problem.startswith("threads")]
