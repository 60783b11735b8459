"""The page: a picture, a question and a model on the left; what was seen on the right."""

from typing import Any, Literal

import gradio as gr

from scripts.demo.samples import Sample
from scripts.demo.shelf import Shelf
from scripts.demo.uploads import read_upload
from scripts.demo.view import write_message
from scripts.demo.visit import BY_LAMBDA, Visit, begin_visit

LARGEST_LAMBDA, LAMBDA_STEP = 10.0, 0.05
FORGET_AFTER = 3600  # seconds that an idle visit is kept
EMPTY = "<p>Ask, and see here what the model looks at.</p>"
DOWNLOAD = """(uri) => {
  if (!uri) return;
  const link = document.createElement("a");
  link.href = uri;
  link.download = "attention.png";
  link.click();
}"""  # the figure is drawn when it is asked for; a click on a link is how a browser saves it
Changes = dict[Any, Any]  # what the page shows next, by component


def take_path(payload: Any) -> str | None:
    """The file that was uploaded, as it came."""
    return None if payload is None else payload.path


class Page:
    """The components, and what they do to each other."""

    def __init__(self, shelf: Shelf, samples: list[Sample]) -> None:
        self.shelf, self.samples = shelf, samples
        title = "What does the model look at?"
        self.blocks = gr.Blocks(title=title, analytics_enabled=False, fill_width=True)
        with self.blocks:
            self.visit = gr.State(None, time_to_live=FORGET_AFTER)
            gr.Markdown(f"# {title}")
            with gr.Row():
                with gr.Column(scale=2, min_width=320):
                    self.lay_out_asking()
                with gr.Column(scale=3, min_width=320):
                    self.lay_out_seeing()
            self.connect()

    def lay_out_asking(self) -> None:
        """What a visitor gives."""
        self.picture = gr.Image(
            label="Picture", sources=["upload", "clipboard"], buttons=[], height=260,
            elem_id="picture",
        )  # fmt: skip
        # gr.Image would decode an upload before anyone could say what is wrong with it, and a class
        # that inherits from it makes Gradio write files among the sources. An update of any
        # property would make another gr.Image of it: give it values alone.
        vars(self.picture).update(preprocess=take_path)
        self.question = gr.Textbox(
            label="Question", placeholder="What color is the circle?", max_lines=3, max_length=300,
            elem_id="question",
        )  # fmt: skip
        names = self.shelf.names
        self.run = gr.Dropdown(names, value=names[0], label="Model", elem_id="run")
        self.ask = gr.Button("Ask", variant="primary", elem_id="ask")
        self.message = gr.HTML(elem_id="message")
        self.gallery = gr.Gallery(
            [(str(sample.path), sample.question) for sample in self.samples],
            label="Examples", show_label=False, columns=3, height="auto", object_fit="contain",
            allow_preview=False, buttons=[], interactive=False, visible=bool(self.samples),
            elem_id="examples",
        )  # fmt: skip

    def lay_out_seeing(self) -> None:
        """What a visitor sees, and what changes it without another pass of the network."""
        self.shown = gr.HTML(EMPTY, elem_id="shown")
        self.components = gr.Radio(
            [], label="K, the number of Gaussians", visible="hidden", elem_id="components"
        )
        self.lam = gr.Slider(
            0, LARGEST_LAMBDA, step=LAMBDA_STEP, label="λ, the price of each",
            visible="hidden", buttons=[], elem_id="lam",
        )  # fmt: skip
        self.answers = gr.HTML(elem_id="answers")
        self.download = gr.Button("Download the figure", interactive=False, elem_id="download")
        self.figure = gr.Textbox(visible=False)

    def connect(self) -> None:
        """Say what happens when; none of it is offered to programs."""
        private: dict[str, Any] = {"api_visibility": "private"}
        view = [self.visit, self.components, self.lam]
        given = [*view, self.picture, self.question, self.run]
        result = [*view, self.shown, self.answers, self.message, self.download]
        asking = {"inputs": given, "outputs": result, "show_progress_on": self.shown, **private}
        gr.on([self.ask.click, self.question.submit], self.do_ask, **asking)
        self.run.input(self.do_switch, **asking)
        self.gallery.select(
            self.do_pick, None, [self.picture, self.question], queue=False, **private
        ).success(self.do_ask, **asking)  # fmt: skip
        self.picture.upload(
            self.do_check, self.picture, [self.picture, self.message], queue=False, **private
        )
        for control in (self.components, self.lam):
            control.input(
                self.do_move, view, [self.shown, self.answers], trigger_mode="always_last",
                show_progress="hidden", queue=False, **private,
            )  # fmt: skip
        self.download.click(self.do_draw, view, self.figure, **private).success(
            None, self.figure, None, js=DOWNLOAD
        )

    def do_ask(
        self,
        before: Visit | None,
        num_components: int,
        lam: float,
        path: str | None,
        question: str,
        run: str,
    ) -> Changes:
        """Ask the network, or say what is missing."""
        try:
            visit = begin_visit(self.shelf, path, question, run)
        except (ValueError, OSError) as error:
            return {self.message: write_message(" ".join(str(error).split()))}
        changes: Changes = {self.visit: visit, self.message: ""}
        if before is None or before.seen.trained is not visit.seen.trained:
            num_components, lam = BY_LAMBDA, visit.seen.lam or 0.0
            changes |= self.offer_choices(visit.seen.k_max, lam)
        changes[self.shown], changes[self.answers] = visit.show(visit.view(num_components, lam))
        return {**changes, self.download: gr.update(interactive=True)}

    def offer_choices(self, k_max: int, lam: float) -> Changes:
        """K and λ as a model has them; neither for one that has no choice."""
        visible: bool | Literal["hidden"] = True if k_max else "hidden"
        choices = [("λ decides", BY_LAMBDA), *((str(k), k) for k in range(1, k_max + 1))]
        most = max(LARGEST_LAMBDA, 2 * lam)
        return {
            self.components: gr.update(choices=choices, value=BY_LAMBDA, visible=visible),
            self.lam: gr.update(value=lam, maximum=most, visible=visible),
        }

    def do_switch(
        self, before: Visit | None, num_components: int, lam: float, *given: Any
    ) -> Changes:
        """Ask another model what was asked before; nothing where nothing was."""
        if before is None:
            return {self.message: ""}
        return self.do_ask(before, num_components, lam, *given)

    def do_pick(self, event: gr.SelectData) -> Changes:
        """Take an example."""
        sample = self.samples[event.index]
        return {self.picture: str(sample.path), self.question: sample.question}

    def do_check(self, path: str | None) -> Changes:
        """Say at once when an upload is no picture."""
        try:
            if path:
                read_upload(path)
        except ValueError as error:
            return {self.picture: None, self.message: write_message(str(error))}
        return {self.picture: path, self.message: ""}

    def do_move(self, visit: Visit | None, num_components: int, lam: float) -> Changes:
        """The same pass under another K or λ."""
        if visit is None:
            return {}
        shown, answers = visit.show(visit.view(num_components, lam))
        return {self.shown: shown, self.answers: answers}

    def do_draw(self, visit: Visit | None, num_components: int, lam: float) -> str:
        """The figure to save, as a data URI."""
        return "" if visit is None else visit.draw(visit.view(num_components, lam))
