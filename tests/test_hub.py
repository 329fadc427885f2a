"""Estimators and their model cards on the Hugging Face Hub, of which there is a copy in a folder here."""

import shutil

import huggingface_hub
import numpy as np
import pandas as pd
import pytest

import tfr_smooth
from tfr_smooth import recommendation

pytestmark = pytest.mark.slow


@pytest.fixture
def hub(tmp_path, monkeypatch):
    folder, calls = tmp_path / "hub", []

    def create_repo(repo_id, **options):
        calls.append((repo_id, options))
        return f"https://huggingface.co/{repo_id}"

    def upload_folder(*, repo_id, folder_path, **_):
        shutil.copytree(folder_path, folder / repo_id, dirs_exist_ok=True)

    def snapshot_download(repo_id, *, allow_patterns):
        assert {path.name for path in (folder / repo_id).iterdir()} - {"README.md"} <= set(allow_patterns)
        return str(folder / repo_id)

    def file_exists(repo_id, filename, **_):
        return (folder / repo_id / filename).exists()

    def hf_hub_download(repo_id, filename, **_):
        return str(folder / repo_id / filename)

    for function in (create_repo, upload_folder, snapshot_download, file_exists, hf_hub_download):
        monkeypatch.setattr(huggingface_hub, function.__name__, function)
    return folder, calls


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    columns = {"query": np.repeat(np.arange(12), 4), "price": random.normal(size=48)}
    return pd.DataFrame({**columns, "label": random.integers(0, 2, 48)})


@pytest.fixture(scope="module")
def ranker(frame):
    options = {"members": 1, "hidden": [2], "epochs": 1, "trees": False, "verbose": False}
    return tfr_smooth.Ranker(**options).fit(frame, query="query", label="label")


def test_a_ranker_comes_back_with_its_scores_and_card(hub, frame, ranker):
    folder, calls = hub
    card = {"data": "Clicks of May.", "metrics": {"ndcg": np.float32(0.5)}, "AUC": "None."}
    assert ranker.push_to_hub("me/shop", private=True, card=card) == "https://huggingface.co/me/shop"
    assert calls == [("me/shop", {"private": True, "token": None, "exist_ok": True})]
    for source in ("me/shop", folder / "me" / "shop"):
        found = tfr_smooth.Ranker.from_pretrained(source)
        np.testing.assert_array_equal(found.predict(frame), ranker.predict(frame))
        assert repr(found) == repr(ranker)
    written = huggingface_hub.ModelCard.load(folder / "me" / "shop" / "README.md")
    assert written.data.library_name == "tfr_smooth" and "ranker" in written.data.tags
    assert "from tfr_smooth.ranker import Ranker\n\nmodel = Ranker.from_pretrained('me/shop')" in written.text
    assert "## Data\n\nClicks of May." in written.text and "## AUC\n" in written.text and '"ndcg": 0.5' in written.text
    assert '"epochs": 1' in written.text


def test_what_people_wrote_there_stays(hub, ranker):
    (folder := hub[0] / "me" / "shop").mkdir(parents=True)
    (folder / "README.md").write_text("edited")
    ranker.push_to_hub("me/shop")
    assert (folder / "README.md").read_text() == "edited" and (folder / "estimator.keras").exists()
    ranker.push_to_hub("me/shop", card={"data": "Clicks of June."})
    assert "Clicks of June." in (folder / "README.md").read_text()
    (folder / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(
        ValueError, match="`repo_id` must be a repository of tfr_smooth, got 'me/shop' with another con"
    ):
        ranker.push_to_hub("me/shop")
    with pytest.raises(ValueError, match="`card` must have titles that are texts, got 1"):
        ranker.push_to_hub("me/shop", card={1: "a"})


def test_a_recommender_comes_back(hub):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"user": np.repeat(np.arange(20), 5), "item": random.integers(0, 9, 100)})
    model = recommendation.Recommender(dim=4, epochs=1, softmax_epochs=1, verbose=False).fit(
        recommendation.from_dataframe(table, user="user", item="item")
    )
    model.push_to_hub("me/items")
    found = recommendation.Recommender.from_pretrained("me/items")
    np.testing.assert_array_equal(found.recommend([0, 1], topn=3).items, model.recommend([0, 1], topn=3).items)


def test_what_is_no_estimator_or_no_name_is_refused(hub, ranker, tmp_path):
    for name in ("shop", "a/b/c", None):
        with pytest.raises(ValueError, match=f"`repo_id` must be OWNER/NAME, got {name!r}"):
            ranker.push_to_hub(name)
    for write in (ranker.push_to_hub, ranker.export):
        with pytest.raises(ValueError, match=r"`card` must be an instance of .*Mapping or None, got 'Clicks of May.'"):
            write("me/shop", card="Clicks of May.")
    ranker.push_to_hub("me/shop")
    with pytest.raises(ValueError, match=r"must be a file of `Recommender.save`, got .*: a file of Ranker"):
        recommendation.Recommender.from_pretrained("me/shop")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"`checkpoint` must have the file estimator.keras"):
        tfr_smooth.Ranker.from_pretrained(tmp_path)
