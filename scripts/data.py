"""make data: make the embedded dataset, download VQA-v2, or check a folder of your own.

python -m scripts.data data=shapes|vqa_v2|custom [data.root=…]
"""

from pathlib import Path
from shlex import quote

from configs.schema.files import MakeData
from data.settings import Data
from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder
from scripts.cli.command import command

# other imports are in the functions: the worker processes import this module, and need no h5py


def make_shapes(data: Data) -> None:
    """Make the `shapes` dataset and print the accuracy of simple baselines."""
    from data.shapes.build import build_shapes
    from data.shapes.report import describe_dataset, measure_baselines

    root = Path(data.root)
    if not build_shapes(root, seed=data.seed, num_workers=data.num_workers, force=data.force):
        print(f"shapes is in {root} already; data.force=true makes it again")
        return
    folder = DataFolder(root)
    print(describe_dataset(folder))
    print("official accuracy on val, in percent, of predictors that see only a part:")
    for name, accuracy in measure_baselines(folder).items():
        print(f"  {accuracy:6.2f}  {name}")
    print(f"shapes is in {root}")


def fetch_vqa_v2(data: Data) -> None:
    """Download VQA-v2's files, build the words, and say how to get features."""
    from data.vqa.vqa_v2 import explain_features, fetch_vqa_v2

    folder = DataFolder(data.root, data.layout)
    human_attention = data.human_attention_url if data.human_attention else None
    glove = data.glove_url if data.glove else None
    fetched = fetch_vqa_v2(folder, data.url, human_attention, data.pause, glove)
    print(f"fetched {', '.join(fetched)}" if fetched else f"all files are in {folder.root} already")
    print_words(folder, data)
    print(explain_features(folder.root))


def check_custom(data: Data) -> None:
    """Check a folder, build the words, and say what is missing."""
    from data.vqa.inventory import take_inventory

    if not data.root:
        raise ValueError("data=custom needs the folder of your data: data.root=…")
    folder = DataFolder(data.root, data.layout)
    inventory = take_inventory(folder)
    print_words(folder, data)
    print("\n".join(inventory.found))
    if inventory.lacking:
        print("still missing:", *(f"  {line}" for line in inventory.lacking), sep="\n")
    else:
        own = f" data.layout={data.layout} modules=[…]" if data.layout != "vqa_v2" else ""
        arguments = f"experiment=photos data.root={quote(data.root)}{own}"
        print(f"complete; train with make train ARGS={quote(arguments)}")


def print_words(folder: DataFolder, data: Data) -> None:
    """Build the vocabulary and the answers of a folder unless they are there, and say so."""
    words = prepare_words(folder, data.min_answer_count, data.question_length)
    verb = "built" if words.built else "kept"
    print(f"{verb} {len(words.vocabulary):,} question words and {len(words.answers):,} answers")
    notice = words.notice_of_threshold(data.min_answer_count, folder)
    if notice:
        print(notice)


MAKERS = {"shapes": make_shapes, "vqa_v2": fetch_vqa_v2, "custom": check_custom}


@command("make_data")
def main(settings: MakeData) -> None:
    """Make, download or check the dataset that `data=` names."""
    name = settings.data.name
    if name not in MAKERS:
        raise ValueError(f"there is no dataset '{name}'; choose one with data={'|'.join(MAKERS)}")
    MAKERS[name](settings.data)


if __name__ == "__main__":
    main()
