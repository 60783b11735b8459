"""The page: an image, a question and a model on the left; attention and answers on the right."""

from typing import Any, Literal

import gradio as gr

from mcan.evaluation.single_question import Answer
from scripts.demo.answer_html import write_message
from scripts.demo.examples import Example
from scripts.demo.model_list import ModelList
from scripts.demo.session import BY_LAMBDA, Session, start_session
from scripts.demo.uploads import read_upload

LARGEST_LAMBDA, LAMBDA_STEP = 10.0, 0.05
FORGET_AFTER = 3600  # seconds that an idle session is kept
EMPTY = "<p>Ask a question to see what the model attends to.</p>"
DOWNLOAD = """(uri) => {
  if (!uri) return;
  const link = document.createElement("a");
  link.href = uri;
  link.download = "attention.png";
  link.click();
}"""  # the figure is drawn when it is asked for; a click on a link is how a browser saves it
Updates = dict[Any, Any]  # what the page shows next, by component


def take_path(payload: Any) -> str | None:
    """The uploaded file, as it came."""
    return None if payload is None else payload.path


class Page:
    """The components, and what happens when they are used."""

    def __init__(self, models: ModelList, examples: list[Example]) -> None:
        self.models, self.examples = models, examples
        title = "What does the model attend to?"
        self.blocks = gr.Blocks(title=title, analytics_enabled=False, fill_width=True)
        with self.blocks:
            self.session = gr.State(None, time_to_live=FORGET_AFTER)
            gr.Markdown(f"# {title}")
            with gr.Row():
                with gr.Column(scale=2, min_width=320):
                    self.add_inputs()
                with gr.Column(scale=3, min_width=320):
                    self.add_outputs()
            self.connect()

    def add_inputs(self) -> None:
        """Picture, question, model, and examples of them."""
        self.picture = gr.Image(
            label="Picture", sources=["upload", "clipboard"], buttons=[], height=260,
            elem_id="picture",
        )  # fmt: skip
        # gr.Image would decode an upload before anyone could say what is wrong with it, and a class
        # that inherits from it makes Gradio write files among the sources. An update of any
        # property would make another gr.Image of it: give it values alone.
        vars(self.picture).update(preprocess=take_path)
        self.question = gr.Textbox(
            label="Question", max_lines=3, max_length=300, elem_id="question",
            placeholder=self.examples[0].question if self.examples else "What is this?",
        )  # fmt: skip
        names = self.models.names
        self.run = gr.Dropdown(names, value=names[0], label="Model", elem_id="run")
        self.ask = gr.Button("Ask", variant="primary", elem_id="ask")
        self.message = gr.HTML(elem_id="message")
        self.gallery = gr.Gallery(
            self.examples, label="Examples", show_label=False, columns=3, height="auto",
            object_fit="contain", allow_preview=False, buttons=[], interactive=False,
            visible=bool(self.examples), elem_id="examples",
        )  # fmt: skip

    def add_outputs(self) -> None:
        """Attention and answers, and K and λ, which change them without another forward pass."""
        self.attention = gr.HTML(EMPTY, elem_id="attention")
        self.components = gr.Radio(
            [], label="K, the number of components", visible="hidden", elem_id="components"
        )
        self.lam = gr.Slider(
            0, LARGEST_LAMBDA, step=LAMBDA_STEP, label="λ, the penalty per component",
            visible="hidden", buttons=[], elem_id="lam",
        )  # fmt: skip
        self.answers = gr.HTML(elem_id="answers")
        self.download = gr.Button("Download the figure", interactive=False, elem_id="download")
        self.figure = gr.Textbox(visible=False)

    def connect(self) -> None:
        """Connect events to the methods below; none of them is a public API."""
        private: dict[str, Any] = {"api_visibility": "private"}
        state = [self.session, self.components, self.lam]
        inputs = [*state, self.picture, self.question, self.run]
        outputs = [*state, self.attention, self.answers, self.message, self.download]
        asking = {
            "inputs": inputs, "outputs": outputs, "show_progress_on": self.attention, **private,
        }  # fmt: skip
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
                self.do_move, state, [self.attention, self.answers], trigger_mode="always_last",
                show_progress="hidden", queue=False, **private,
            )  # fmt: skip
        self.download.click(self.do_draw, state, self.figure, **private).success(
            None, self.figure, None, js=DOWNLOAD
        )

    def do_ask(
        self,
        before: Session | None,
        num_components: int,
        lam: float,
        path: str | None,
        question: str,
        run: str,
    ) -> Updates:
        """Run the network, or say what is missing."""
        # For an output that is left out Gradio makes another component, and one that is an input
        # too stays in the session for ever: K and λ are always given their values.
        updates: Updates = {self.components: num_components, self.lam: lam}
        try:
            session = start_session(self.models, path, question, run)
        except (ValueError, OSError) as error:
            return {**updates, self.message: write_message(" ".join(str(error).split()))}
        updates |= {self.session: session, self.message: ""}
        if before is None or before.forward.trained is not session.forward.trained:
            num_components, lam = BY_LAMBDA, session.forward.lam or 0.0
            updates |= self.offer_choices(session.forward.k_max, lam)
        updates |= self.do_move(session, num_components, lam)
        return {**updates, self.download: gr.update(interactive=True)}

    def offer_choices(self, k_max: int, lam: float) -> Updates:
        """K and λ as a model has them; neither for one that has no choice."""
        visible: bool | Literal["hidden"] = True if k_max else "hidden"
        choices = [("selected with λ", BY_LAMBDA), *((str(k), k) for k in range(1, k_max + 1))]
        most = max(LARGEST_LAMBDA, 2 * lam)
        return {
            self.components: gr.update(choices=choices, value=BY_LAMBDA, visible=visible),
            self.lam: gr.update(value=lam, maximum=most, visible=visible),
        }

    def do_switch(
        self, before: Session | None, num_components: int, lam: float, *inputs: Any
    ) -> Updates:
        """Ask another model the last question; nothing where there was none."""
        if before is None:
            return {self.components: num_components, self.lam: lam, self.message: ""}
        return self.do_ask(before, num_components, lam, *inputs)

    def do_pick(self, event: gr.SelectData) -> Updates:
        """Take an example."""
        example = self.examples[event.index]
        return {self.picture: str(example.path), self.question: example.question}

    def do_check(self, path: str | None) -> Updates:
        """Say at once when an upload is not an image."""
        try:
            if path:
                read_upload(path)
        except ValueError as error:
            return {self.picture: None, self.message: write_message(str(error))}
        return {self.picture: path, self.message: ""}

    def do_move(self, session: Session | None, num_components: int, lam: float) -> Updates:
        """Answer from the last forward pass, under another K or λ."""
        answer = choose(session, num_components, lam)
        if session is None or answer is None:
            return {}
        attention, answers = session.show(answer)
        return {self.attention: attention, self.answers: answers}

    def do_draw(self, session: Session | None, num_components: int, lam: float) -> str:
        """The figure to save, as a data URI."""
        answer = choose(session, num_components, lam)
        return "" if session is None or answer is None else session.draw(answer)


def choose(session: Session | None, num_components: int | None, lam: float) -> Answer | None:
    """The answer under K and λ; None for values that no control of the page gives."""
    try:
        return None if session is None else session.answer(num_components or BY_LAMBDA, lam)
    except ValueError:
        return None
