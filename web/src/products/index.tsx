// What each product adds to the shell. A product's code is loaded when it is needed.
import { lazy, type ComponentType } from "react";
import type { State } from "../api";
import type { Attachments } from "../composer";
import { wordsOf } from "../i18n";
import { intake } from "./diagnosis/intake";
import type { AnswerProps, Intake, MessageProps, PageProps, QuestionProps, StartProps, ViewProps } from "./props";
import { forget } from "./tutor/kept";

export interface Product {
  /** Shown below the messages of a thread. */
  View?: ComponentType<ViewProps>;
  /** Shown instead of an empty conversation. */
  Start?: ComponentType<StartProps>;
  /** Shown instead of the conversation of a thread. */
  Page?: ComponentType<PageProps>;
  /** Shown in the header of a thread. */
  Header?: ComponentType;
  /** Shown beside the messages; instead of them on a narrow screen. */
  Panel?: ComponentType<ViewProps>;
  panelName?: () => string;
  /** Shows the text of an answer, which is plain Markdown until it is loaded. */
  Answer?: ComponentType<AnswerProps>;
  /** How the graph takes files with a message; none by default. */
  attachments?: Attachments;
  /** Takes files by itself, beside the messages. */
  intake?: Intake;
  /** Shown at each message of the person. */
  Message?: ComponentType<MessageProps>;
  /** Shown instead of the plain card of a question. */
  Question?: ComponentType<QuestionProps>;
  /** Whether a run whose states these are has taken what it was given as an answer; by default it has. */
  takes?: (states: State[]) => boolean;
  /** Called when the person asks for a new conversation. */
  onNew?: () => void;
}

const investigation = wordsOf({ name: "Investigation" }, { name: "Investigação" });

/** The products by the graph's name. A graph without an entry is a plain conversation. */
export const products: Record<string, Product> = {
  chat: {
    Start: lazy(() => import("./chat/start")),
    Header: lazy(() => import("./chat/header")),
    Answer: lazy(() => import("./chat/answer")),
  },
  icp_finder: {
    View: lazy(() => import("./icp_finder/view")),
    Start: lazy(() => import("./icp_finder/start")),
    Question: lazy(() => import("./icp_finder/question")),
    // A message while a question waits may be a command, after which the question waits on.
    takes: (states) => states.some(({ values }) => values.answer != null),
  },
  tutor: {
    View: lazy(() => import("./tutor/view")),
    Start: lazy(() => import("./tutor/start")),
    Message: lazy(() => import("./tutor/correction")),
    onNew: forget,
  },
  research: { Start: lazy(() => import("./research/start")), Page: lazy(() => import("./research/page")) },
  diagnosis: {
    Start: lazy(() => import("./diagnosis/start")),
    Panel: lazy(() => import("./diagnosis/panel")),
    panelName: () => investigation("name"),
    Question: lazy(() => import("./diagnosis/question")),
    intake,
  },
};
