// What each product adds to the shell. A product's code is loaded when it is needed.
import { lazy, type ComponentType } from "react";
import type { Assistant, Fields } from "../api";
import type { Shown } from "../message";
import { forget } from "./tutor/kept";

export interface ViewProps {
  threadId: string;
  /** The state of the thread, or of the version that is shown. */
  values: Fields;
  /** Whether a run of the thread is pending or running. */
  isBusy: boolean;
  /** Whether the thread takes no more messages. */
  readOnly: boolean;
  /** Send a message as if the person had typed it; false if the server refused it. */
  say: (text: string) => Promise<boolean>;
}

export interface StartProps {
  assistant: Assistant;
  /** Open a thread, and send `text` in it unless it is empty. */
  onStarted: (thread: string, assistant: string, text: string) => void;
}

export interface MessageProps {
  message: Shown;
  /** The state of the thread, or of the version that is shown. */
  values: Fields;
  /** The state as the server has stored it last: the stream may not repeat a message that changed. */
  stored: Fields;
}

export interface QuestionProps {
  threadId: string;
  /** What the graph asks: the payload of its interrupt. */
  value: unknown;
  /** Answer. `words` is what people read as the answer later. */
  onAnswer: (answer: unknown, words: string) => Promise<void>;
  onStarted: StartProps["onStarted"];
}

export interface Product {
  /** Shown below the messages of a thread. */
  View?: ComponentType<ViewProps>;
  /** Shown instead of an empty conversation. */
  Start?: ComponentType<StartProps>;
  /** Shown at each message of the person. */
  Message?: ComponentType<MessageProps>;
  /** Shown instead of the plain card of a question. */
  Question?: ComponentType<QuestionProps>;
  /** Called when the person asks for a new conversation. */
  onNew?: () => void;
}

/** The products by the graph's name. A graph without an entry is a plain conversation. */
export const products: Record<string, Product> = {
  chat: { View: lazy(() => import("./chat/view")) },
  icp_finder: {
    View: lazy(() => import("./icp_finder/view")),
    Start: lazy(() => import("./icp_finder/start")),
    Question: lazy(() => import("./icp_finder/question")),
  },
  tutor: {
    View: lazy(() => import("./tutor/view")),
    Start: lazy(() => import("./tutor/start")),
    Message: lazy(() => import("./tutor/correction")),
    onNew: forget,
  },
};
