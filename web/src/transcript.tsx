// The messages of a conversation: those near the view, following the end while the person is there.
import { useCallback, useEffect, useMemo, useRef, useState, type ComponentType, type ReactNode } from "react";
import type { Fields } from "./api";
import type { Place } from "./branches";
import { t } from "./i18n";
import { Icon } from "./icon";
import { Message, type MessageActions } from "./message";
import type { AnswerProps, MessageProps } from "./products/props";
import type { Shown } from "./shown";
import { useSlice } from "./virtual";

const ASSUMED = 140;
const AT_END = 80;
// The share of the box that shows the beginning of what is below the end.
const BELOW = 0.4;
// The share that the message before a question may have, and the space above, in pixels.
const BEFORE = 0.4;
const ABOVE = 12;

interface Props {
  messages: Shown[];
  values: Fields;
  /** Whether the last message still grows. */
  isGrowing: boolean;
  Answer: ComponentType<AnswerProps> | undefined;
  /** What the product shows at a message of the person. */
  Extra: ComponentType<MessageProps> | undefined;
  /** The messages of the newest checkpoint by their ids, and its state. */
  stored: Map<string, Fields>;
  storedValues: Fields;
  places: Map<string, Place>;
  readOnly: boolean;
  actions: MessageActions;
  /** What is shown below single messages, by their ids. */
  extras: ReadonlyMap<string, ReactNode>;
  /** Shown below the messages. Here is the end that is kept in sight. */
  children: ReactNode;
  /** Shown below the end. */
  below: ReactNode;
}

export function Transcript(props: Props) {
  const { messages, values, isGrowing, Answer, Extra, stored, places, readOnly, actions } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const end = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  // Whether the person has turned away from the end, however little.
  const isHeld = useRef(false);
  // Where the view was, in pixels from the top, and of how many.
  const seen = useRef({ top: 0, height: 0 });
  const [isAway, setAway] = useState(false);
  const keys = useMemo(() => messages.map((each) => each.id), [messages]);
  const shown = useSlice(keys, ASSUMED, scroller, list);

  /** Return how far the end is below the place where it is kept, in pixels. */
  const gap = useCallback(() => {
    const box = scroller.current;
    if (box === null || end.current === null) return 0;
    const room = Math.min(below.current?.offsetHeight ?? 0, box.clientHeight * BELOW);
    const down = end.current.getBoundingClientRect().top - (box.getBoundingClientRect().bottom - room);
    const asked = content.current?.querySelector(".questions")?.getBoundingClientRect().top;
    if (asked === undefined) return down;
    // Of a question that is taller than the view, its beginning is kept in sight, after a message that is short.
    const message = [...(list.current?.querySelectorAll(".message") ?? [])].at(-1)?.getBoundingClientRect().top ?? asked;
    const start = asked - message < box.clientHeight * BEFORE ? message : asked;
    return Math.min(down, start - ABOVE - box.getBoundingClientRect().top);
  }, []);
  const toEnd = useCallback(() => {
    const box = scroller.current;
    if (box === null) return;
    isFollowing.current = true;
    isHeld.current = false;
    setAway(false);
    box.scrollBy({ top: gap() });
    seen.current = { top: box.scrollTop, height: box.scrollHeight };
  }, [gap]);

  useEffect(() => {
    const box = scroller.current;
    if (box === null || content.current === null) return;
    const stay = () => {
      // What a person has opened may be closed again, or fit into the view.
      if (isFollowing.current || Math.abs(gap()) < 1 || box.scrollHeight <= box.clientHeight) toEnd();
      else setAway(gap() > AT_END);
    };
    const sizes = new ResizeObserver(stay);
    sizes.observe(content.current);
    sizes.observe(box);
    return () => sizes.disconnect();
  }, [gap, toEnd]);
  // A message of one's own is what the person wants to see.
  const newest = messages.at(-1);
  const own = newest?.role === "human" ? newest.id : undefined;
  useEffect(() => {
    if (own !== undefined) toEnd();
  }, [own, toEnd]);
  // The words that answer a question come from the server, already with what the assistant says to them.
  const said = messages.findLast((each) => each.role === "human")?.id;
  const known = useRef(keys);
  useEffect(() => {
    const old = known.current;
    known.current = keys;
    const last = old.at(-1);
    // Another version of the conversation is no message of one's own.
    if (said !== undefined && last !== undefined && !old.includes(said) && keys.includes(last)) toEnd();
  }, [keys, said, toEnd]);

  return (
    <div
      className="scroller"
      ref={scroller}
      tabIndex={0}
      role="region"
      aria-label={t("menu")}
      onScroll={(event) => {
        const box = event.currentTarget;
        const left = gap();
        const { top, height } = seen.current;
        const hasGoneDown = box.scrollTop > top;
        // Content that shrinks moves the view up too, but only to where it ends.
        const hasGoneUp = box.scrollTop < top && box.scrollTop < box.scrollHeight - box.clientHeight - 1;
        // When content grows, the browser moves the view so that what is seen stays in its place.
        const hasGrown = box.scrollHeight > height;
        if (Math.abs(left) < AT_END && (!isHeld.current || hasGoneDown)) {
          isFollowing.current = true;
          isHeld.current = false;
        }
        else if (!hasGrown && (hasGoneUp || (hasGoneDown && left < 0))) isFollowing.current = false;
        seen.current = { top: box.scrollTop, height: box.scrollHeight };
        setAway(!isFollowing.current && left > AT_END);
      }}
      onWheel={({ deltaY }) => {
        if (deltaY >= 0 || gap() >= AT_END) return;
        isHeld.current = true;
        isFollowing.current = false;
      }}
      onClickCapture={({ target }) => {
        // What a person opens stays where they have clicked.
        if (target instanceof Element && target.closest("summary, .fold button, .tree button, .tree-list button") !== null) {
          isFollowing.current = false;
        }
      }}
    >
      <div className="stack column" ref={content}>
        <ol className="plain messages" ref={list} aria-busy={isGrowing}>
          <li aria-hidden="true" style={{ height: shown.before }} />
          {messages.slice(shown.start, shown.end).map((each, i) => (
            <Message
              key={each.id}
              message={each}
              values={values}
              growing={isGrowing && shown.start + i === messages.length - 1}
              isLast={shown.start + i === messages.length - 1}
              stored={stored.get(each.id)}
              storedValues={props.storedValues}
              Answer={Answer}
              Extra={Extra}
              place={places.get(each.id)}
              readOnly={readOnly}
              actions={actions}
              extra={props.extras.get(each.id)}
            />
          ))}
          <li aria-hidden="true" style={{ height: shown.after }} />
        </ol>
        {props.children}
        <div ref={end} />
        <div ref={below}>{props.below}</div>
      </div>
      {isAway && (
        <button
          className="to-end"
          onClick={toEnd}
        >
          <Icon name="down" />
          {t("toEnd")}
        </button>
      )}
    </div>
  );
}
