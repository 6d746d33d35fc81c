// What the shell gives to the components of products.
import type { ComponentType } from "react";
import type { Assistant, Fields } from "../api";
import type { Shown } from "../shown";

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
  /** Open a thread, and send `text` in it unless it is empty. It is not shown if the person has not written it. */
  onStarted: (thread: string, assistant: string, text: string, isHidden?: boolean) => void;
}

/** How a product takes files: at once, as they are chosen, dropped or pasted, and not with a message. */
export interface Intake {
  /** Begin to add files to a thread. `isText`: they are a text that was too long for a message. */
  take: (thread: string, files: File[], isText: boolean) => void;
  /** Shown above the composer: what is on its way, and what was added. */
  View: ComponentType<ViewProps>;
}

export interface PageProps {
  threadId: string;
}

export interface AnswerProps {
  message: Shown;
  /** The message as the last checkpoint has it. What was streamed lacks what the graph has added. */
  stored: Fields | undefined;
  /** The state of the thread; its citations belong to the last answer. */
  values: Fields;
  isLast: boolean;
  growing: boolean;
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
  /** Whether the person can write an answer below, in the composer. */
  hasComposer: boolean;
  /** Give an answer; false if the server refused it. */
  onAnswer: (answer: unknown) => Promise<boolean>;
  onStarted: StartProps["onStarted"];
}
