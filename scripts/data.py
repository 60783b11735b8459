"""Make the embedded dataset, download VQA-v2, or check a folder of one's own.

python -m scripts.data data=shapes|vqa_v2|custom [data.root=…]
"""

from pathlib import Path

from omegaconf import DictConfig

from scripts.entry import command


def make_shapes(config: DictConfig) -> None:
    """Make the `shapes` dataset and print how far one gets in it without seeing."""
    # imported here: the worker processes import this module too, and need neither torch nor h5py
    from data.shapes.baselines import measure_baselines
    from data.shapes.build import build_shapes
    from data.shapes.report import describe_dataset
    from data.splits import Folder

    root = Path(config.root)
    built = build_shapes(root, seed=config.seed, num_workers=config.num_workers, force=config.force)
    if not built:
        print(f"shapes is in {root} already; data.force=true makes it anew")
        return
    folder = Folder(root)
    print(describe_dataset(folder))
    print("official accuracy on val, in percent, of predictors that see only a part:")
    for name, accuracy in measure_baselines(folder).items():
        print(f"  {accuracy:6.2f}  {name}")
    print(f"shapes is in {root}")


def fetch_vqa_v2(config: DictConfig) -> None:
    """Download VQA-v2's files, build the words, and say how to get features."""
    from data.splits import Folder
    from data.vqa_v2 import explain_features, fetch_vqa_v2

    folder = Folder(config.root)
    hat = config.human_attention_url if config.human_attention else None
    fetched = fetch_vqa_v2(folder, config.url, hat, config.pause)
    print(f"fetched {', '.join(fetched)}" if fetched else f"all files are in {folder.root} already")
    print_words(folder.root, config.answers_more_than)
    print(explain_features(folder.root))


def check_custom(config: DictConfig) -> None:
    """Check a folder, build the words, and say what is missing."""
    from data.custom import take_inventory
    from data.splits import Folder

    if not config.root:
        raise ValueError("data=custom needs the folder of your data: data.root=…")
    inventory = take_inventory(Folder(config.root))
    print_words(Path(config.root), config.answers_more_than)
    print("\n".join(inventory.found))
    if inventory.lacking:
        print("still missing:")
        print("\n".join(f"  {line}" for line in inventory.lacking))
    else:
        print(f"complete; train with make train ARGS='data=custom data.root={config.root}'")


def print_words(root: Path, more_than: int) -> None:
    """Build the vocabulary and the answers of a folder unless they are there, and say so."""
    from data.splits import Folder
    from data.words import prepare_words

    words = prepare_words(Folder(root), more_than)
    verb = "built" if words.built else "kept"
    print(f"{verb} {len(words.vocabulary):,} question words and {len(words.answers):,} answers")
    notice = words.notice_of_threshold(more_than, Folder(root))
    if notice:
        print(notice)


MAKERS = {"shapes": make_shapes, "vqa_v2": fetch_vqa_v2, "custom": check_custom}


@command("make_data")
def main(config: DictConfig) -> None:
    """Make, download or check the dataset that `data=` names."""
    name = config.data.name
    if name not in MAKERS:
        raise ValueError(f"there is no dataset '{name}'; choose one with data={'|'.join(MAKERS)}")
    MAKERS[name](config.data)


if __name__ == "__main__":
    main()
