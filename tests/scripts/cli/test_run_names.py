"""The default name of a run tells runs apart, and a run is found under the name it once had."""

import itertools

import pytest
from omegaconf import OmegaConf

from attention.heads.registry import complete_options
from scripts import train
from scripts.cli.run_names import LONGEST, choose_folder
from scripts.cluster import submit

START = "shapes-multimodal-seed1"


def read(*words):
    (settings,) = train.main.compose(list(words))
    return settings


def name(*words):
    return choose_folder(read(*words)).name


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", START),
        ("attention=discrete seed=2", "shapes-discrete-seed2"),
        ("optim.batch_size=32 attention.lam=0.5 glove=none", START),  # as the files have them
        ("optim.batch_size=16", f"{START}-batch_size_16"),
        ("model=large", f"{START}-model_large"),
        ("model=large model.dropout=0.2", f"{START}-model_large-dropout_0.2"),
        ("optim=paper", f"{START}-optim_paper"),
        ("optim.rate={name:constant,value:1e-4}", f"{START}-rate_constant_value_0.0001"),
        ("optim.rate.peak=1e-3", f"{START}-peak_0.001"),
        ("attention.lam={linear:[0,4]}", f"{START}-lam_linear_0_4"),
        ("data.seed=3 attention.seed=4", f"{START}-data.seed_3-attention.seed_4"),
        ("train_split=train+val", f"{START}-train_split_train+val"),
        ("runtime.num_threads=3 figures=0 tracker=[] data.num_workers=1 runs=elsewhere", START),
        ("data=custom data.root=mine", "custom-multimodal-seed1-root_mine"),
        ("experiment=paper_multimodal", "vqa_v2-multimodal-seed1-paper"),
        ("experiment=release_multimodal", "vqa_v2-multimodal-seed1-release"),
        ("experiment=paper_unimodal model=large", "vqa_v2-unimodal-seed1-paper-model_large"),
        ("attention=own attention.name=discrete", "shapes-discrete-seed1"),
    ],
)
def test_a_name_says_what_differs_from_the_chosen_files(words, expected):
    assert name(*words.split()) == expected


def test_the_order_of_the_words_and_the_command_do_not_matter():
    words = ["model=large", "optim.batch_size=64", "attention.k_max=2", "attention.init=weighted"]
    names = {name(*order) for order in itertools.islice(itertools.permutations(words), 0, 24, 5)}
    assert names == {f"{START}-model_large-init_weighted-k_max_2-batch_size_64"}
    (submitted,) = submit.main.compose(words)
    assert choose_folder(submitted).name in names


def test_paths_in_a_name_are_short_legal_and_told_apart():
    paths = ["runs/a/best.pt", "runs/b/best.pt", "/x y/é/best.pt", "other/a/best.pt", "a_best.pt"]
    names = [name(f"init_from='{path}'") for path in paths]
    assert len(set(names)) == len(paths)
    assert all(each.isascii() and not set(each) & set("/ '") for each in names)
    assert names[0].startswith(f"{START}-init_from_a_best.pt_")


def test_a_long_name_ends_with_a_hash_of_all_changes():
    many = [f"init_from={'long' * 30}{{}}", "attention.k_max=3", "optim.batch_size=8"]
    one, other = (name(many[0].format(end), *many[1:]) for end in "ab")
    assert one != other
    assert max(len(one), len(other)) <= LONGEST
    assert one.startswith(f"{START}-k_max_3-batch_size_8-")


def test_a_file_of_ones_own_is_told_from_the_head_that_it_names(tmp_path):
    (tmp_path / "attention").mkdir()
    (tmp_path / "attention" / "sharp.yaml").write_text("name: discrete\n")
    assert name(f"--config-dir={tmp_path}", "attention=sharp") == (
        "shapes-discrete-seed1-attention_sharp"
    )


def keep(folder, *words):
    """The config of a run, as `make train` keeps it."""
    settings = read(*words)
    composed = {**settings.composed, "attention": complete_options(**settings.attention)}
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(composed)))


def test_a_run_under_its_old_name_is_resumed_if_it_is_this_run(tmp_path):
    old, words = tmp_path / START, ["model=large", "optim.batch_size=16"]
    keep(old, *words)
    resume = [f"runs={tmp_path}", "resume=true"]
    assert choose_folder(read(*words, *resume)) == old
    assert choose_folder(read(*words, *resume, "optim.epochs=9")) == old
    assert choose_folder(read(*words, f"runs={tmp_path}")) != old  # a new run
    for other in (["model=small"], [*words, "init_from=a"], [*words, "data.root=b"]):
        assert choose_folder(read(*other, *resume)) != old
    new = tmp_path / name(*words)
    keep(new, *words)
    assert choose_folder(read(*words, *resume)) == new
    with pytest.raises(ValueError, match=f"may be any of {START}, {new.name} in "):
        choose_folder(read(*words, *resume, "optim.epochs=9"))
