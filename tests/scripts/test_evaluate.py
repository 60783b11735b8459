"""make evaluate: its digits, its files, and what it rejects."""

import json
import shutil

import pytest
import torch

from attention import Grid
from data.features.reader import FeatureStore
from data.vqa.accuracy import score_answer
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_questions
from data.vqa.results import load_results
from mcan.checkpoint import load_checkpoint
from mcan.evaluation.trained_model import load_trained
from scripts import evaluate, score
from tests.data.sample_folder import fill_folder
from tests.small_models import run_here
from tests.small_runs import without_times

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

RESULTS = "vqa_OpenEnded_mscoco_val2014_peaky_results.json"


@pytest.fixture(scope="module")
def evaluated(peaky_run, tmp_path_factory):
    """The output folder of one evaluation, and what was printed."""
    folder = tmp_path_factory.mktemp("evaluated")
    code, printed, error = run_here(
        evaluate.main, f"checkpoint={peaky_run}", f"output={folder}", "attention.lam=0.3"
    )
    assert (code, error) == (0, "")
    return folder, printed


@pytest.fixture(scope="module")
def report(evaluated):
    return json.loads((evaluated[0] / "val.json").read_text())


def test_there_are_a_report_and_a_result_file_of_the_official_name(evaluated):
    names = {path.name for path in evaluated[0].iterdir()}
    assert names == {"val.json", RESULTS}


def test_the_result_file_scored_by_itself_gives_the_digits_of_the_report(
    evaluated, report, small_dataset, tmp_path
):
    folder = DataFolder(small_dataset)
    results = evaluated[0] / RESULTS
    words = [f"questions={folder.questions('val')}", f"annotations={folder.annotations('val')}"]
    words += [f"results={results}", f"output={tmp_path / 'score.json'}"]
    code, _, error = run_here(score.main, *words, quiet=[])
    assert (code, error) == (0, "")
    scored = json.loads((tmp_path / "score.json").read_text())
    assert report["accuracy"] == scored["overall"]
    assert report["accuracy_by_answer_type"] == scored["perAnswerType"]
    assert report["accuracy_by_question_type"] == scored["perQuestionType"]


@torch.inference_mode()
def test_answers_and_components_are_those_of_one_question_at_a_time(
    evaluated, report, small_dataset, peaky_run
):
    """The plain forward, without batches, shared images or gathering."""
    trained = load_trained(peaky_run, changed={"lam": 0.3})
    folder = DataFolder(small_dataset)
    results = load_results(evaluated[0] / RESULTS)
    objects = json.loads((small_dataset / "shapes_metadata.json").read_text())["questions"]
    store = FeatureStore(folder.store("val"))
    questions = load_questions([folder.questions("val")])
    chosen, groups, collapsed = [], {"one object": [], "several objects": []}, 0
    for number, image_id, text in zip(
        questions.ids.tolist(), questions.image_ids.tolist(), questions.texts, strict=True
    ):
        tokens = torch.tensor([trained.words.encode(text)])
        features = torch.from_numpy(store.rows(image_id).copy())[None].float()
        question, attended = trained.model.attend(features, Grid.of([store.size(image_id)]), tokens)
        best = trained.model.answer(question, attended.context).argmax()
        assert trained.words.answers.words[int(best)] == results[number]
        count = int(attended.mixture.num_components)
        chosen.append(count)
        sigma = attended.mixture.sigma[0, 0, :count]
        collapsed += sum(float(torch.linalg.det(each)) < 1e-8 for each in sigma)
        num_objects = len(objects[str(number)]["objects"])
        if num_objects:
            groups["one object" if num_objects == 1 else "several objects"].append(count)
    store.close()
    counts = [chosen.count(k) for k in (1, 2, 3, 4)]
    assert report["component_counts"] == counts
    assert report["component_shares"] == [round(100 * count / 60, 2) for count in counts]
    assert sum(count > 0 for count in counts) >= 3  # K* really varies
    for name, group in groups.items():
        assert group
        described = report["component_counts_by_objects"][name]
        assert described == [group.count(k) for k in (1, 2, 3, 4)]
    assert report["collapsed_share"] == round(collapsed / sum(chosen), 4)


def test_the_report_says_what_was_evaluated_and_how_fast(report, peaky_run, small_dataset):
    assert report["checkpoint"] == str(peaky_run / "best.pt")
    assert report["attention"]["lam"] == 0.3
    assert (report["split"], report["data"]) == ("val", str(small_dataset))
    assert (report["num_questions"], report["trained_on"]) == (60, [])
    assert report["validation_questions_per_second"] > 0


def test_what_is_printed_has_the_accuracy_the_shares_and_the_files(evaluated, report):
    folder, printed = evaluated
    assert f"{report['accuracy']:8.2f}" in printed
    assert "several objects" in printed
    assert "how many" not in printed.split("K* = 4")[1]  # the objects of all questions are known
    assert "K* = 4" in printed
    assert str(folder / "val.json") in printed


def name_objects(question):
    names = ("no object", "one object", "several objects")
    return names[min(2, len(question["objects"]))]


@pytest.mark.parametrize(
    ("metric", "group_of"),
    [("accuracy_by_objects", name_objects), ("accuracy_by_template", lambda q: q["template"])],
)
def test_the_accuracy_of_a_group_is_the_mean_over_its_questions(
    report, evaluated, small_dataset, metric, group_of
):
    metadata = json.loads((small_dataset / "shapes_metadata.json").read_text())["questions"]
    answers = load_results(evaluated[0] / RESULTS)
    expected = {}
    for each in DataFolder(small_dataset).read_annotations("val"):
        accuracy = score_answer(answers[each.question_id], each.answers)
        expected.setdefault(group_of(metadata[str(each.question_id)]), []).append(accuracy)
    assert report[metric] == {
        name: pytest.approx(100 * sum(group) / len(group), abs=0.006)
        for name, group in expected.items()
    }


def test_other_images_are_shown_to_every_question_as_a_control(
    peaky_run, report, evaluated, small_dataset, tmp_path
):
    words = [f"checkpoint={peaky_run}", f"output={tmp_path}", "attention.lam=0.3"]
    code, printed, error = run_here(evaluate.main, *words, "other_images=true")
    assert (code, error) == (0, "")
    assert "another question's image" in printed
    control = json.loads((tmp_path / "val-other-images.json").read_text())
    assert (control["other_images"], report["other_images"]) == (True, False)
    name = "vqa_OpenEnded_mscoco_val2014_peaky{}_results.json"
    seen = load_results(evaluated[0] / name.format(""))
    unseen = load_results(tmp_path / name.format("-other-images"))
    assert seen.keys() == unseen.keys()
    assert seen != unseen


def test_validation_during_training_wrote_the_same_names_and_values(multimodal_run, tmp_path):
    code, _, error = run_here(
        evaluate.main, f"checkpoint={multimodal_run / 'last.pt'}", f"output={tmp_path}"
    )
    assert (code, error) == (0, "")
    line = without_times(load_checkpoint(multimodal_run / "last.pt")["lines"][-1])
    report = without_times(json.loads((tmp_path / "val.json").read_text()))
    shared = line.keys() & report.keys()
    assert shared >= {"accuracy", "component_shares", "collapsed_share", "accuracy_by_template"}
    assert {name for name in report if "accuracy" in name or "component" in name} <= shared
    assert {name: line[name] for name in shared - {"epoch"}} == {
        name: report[name] for name in shared - {"epoch"}
    }


MODULE = """
from mcan.evaluation.metrics import register_metric

@register_metric("length")
def answer_length(answered):
    assert answered.answers.keys() == {each.question_id for each in answered.annotations}
    return {"mean_answer_length": sum(map(len, answered.answers.values())) / len(answered.answers)}
"""


def test_a_metric_of_a_users_module_is_in_the_report(discrete_run, tmp_path, monkeypatch):
    (tmp_path / "my_metric.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    words = f"checkpoint={discrete_run}", f"output={tmp_path}", "modules=[my_metric]"
    assert run_here(evaluate.main, *words)[0] == 0
    report = json.loads((tmp_path / "val.json").read_text())
    results = json.loads(next(tmp_path.glob("vqa*_results.json")).read_text())
    mean = sum(len(each["answer"]) for each in results) / len(results)
    assert report["mean_answer_length"] == pytest.approx(mean)


def test_discrete_attention_is_evaluated_without_components_beside_its_checkpoint(
    discrete_run, tmp_path
):
    run = tmp_path / "copied"
    run.mkdir()
    shutil.copy(discrete_run / "best.pt", run)
    code, printed, error = run_here(evaluate.main, f"checkpoint={run}", "split=train")
    assert (code, error) == (0, "")
    assert "WARNING" in printed
    assert "trained on train" in printed
    report = json.loads((run / "evaluate" / "train.json").read_text())
    assert report["trained_on"] == ["train"]
    assert not any("component" in name for name in report)
    assert set(report["accuracy_by_objects"]) == {"no object", "one object", "several objects"}


def test_a_dataset_that_does_not_say_what_its_questions_rest_on_has_those_that_count(
    peaky_run, data, tmp_path
):
    (data.root / "shapes_metadata.json").unlink()
    words = f"checkpoint={peaky_run}", f"output={tmp_path}", f"data.root={data.root}"
    code, printed, _ = run_here(evaluate.main, *words)
    assert code == 0
    assert 'objects: of the questions "how many" alone' in printed
    report = json.loads((tmp_path / "val.json").read_text())
    assert "component_counts" in report
    assert not any("template" in name for name in report)
    annotations = data.read_annotations("val")
    counting = [each for each in annotations if each.question_type.startswith("how many")]
    assert 0 < len(counting) < len(annotations)
    by_objects = report["component_counts_by_objects"]
    assert sum(map(sum, by_objects.values())) == len(counting)
    none = [each for each in counting if each.multiple_choice_answer == "0"]
    assert sum(by_objects.get("no object", [])) == len(none)


def test_a_split_without_questions_names_those_there_are(tmp_path):
    folder = fill_folder(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"test2015_questions.json does not exist; choose "):
        folder.read_questions("test")
    with pytest.raises(FileNotFoundError, match=r"choose split=train or split=val$"):
        folder.read_questions("val+test")
