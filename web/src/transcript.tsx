// The messages of a conversation: those near the view, following the end while the person is there.
import { useEffect, useMemo, useRef, useState, type ComponentType, type ReactNode } from "react";
import type { Fields } from "./api";
import type { Place } from "./branches";
import { t } from "./i18n";
import { Icon } from "./icon";
import { Message, type MessageActions, type Shown } from "./message";
import type { AnswerProps } from "./products";
import { useSlice } from "./virtual";

const ASSUMED = 140;
const AT_END = 80;

interface Props {
  messages: Shown[];
  values: Fields;
  /** Whether the last message still grows. */
  isGrowing: boolean;
  Answer: ComponentType<AnswerProps> | undefined;
  places: Map<string, Place>;
  readOnly: boolean;
  actions: MessageActions;
  /** Shown below the messages. */
  children: ReactNode;
}

export function Transcript(props: Props) {
  const { messages, values, isGrowing, Answer, places, readOnly, actions, children } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const isFollowing = useRef(true);
  const [isAway, setAway] = useState(false);
  const keys = useMemo(() => messages.map((each) => each.id), [messages]);
  const shown = useSlice(keys, ASSUMED, scroller, list);

  useEffect(() => {
    const box = scroller.current;
    if (box === null || content.current === null) return;
    const stay = () => {
      if (isFollowing.current) box.scrollTop = box.scrollHeight;
    };
    const sizes = new ResizeObserver(stay);
    sizes.observe(content.current);
    sizes.observe(box);
    return () => sizes.disconnect();
  }, []);
  // A message of one's own is what the person wants to see.
  const newest = messages.at(-1);
  const own = newest?.role === "human" ? newest.id : undefined;
  useEffect(() => {
    const box = scroller.current;
    if (own === undefined || box === null) return;
    isFollowing.current = true;
    box.scrollTop = box.scrollHeight;
  }, [own]);

  return (
    <div
      className="scroller"
      ref={scroller}
      tabIndex={0}
      role="region"
      aria-label={t("menu")}
      onScroll={(event) => {
        const box = event.currentTarget;
        const left = box.scrollHeight - box.scrollTop - box.clientHeight;
        isFollowing.current = left < AT_END;
        setAway(left > box.clientHeight);
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
              Answer={Answer}
              place={places.get(each.id)}
              readOnly={readOnly}
              actions={actions}
            />
          ))}
          <li aria-hidden="true" style={{ height: shown.after }} />
        </ol>
        {children}
      </div>
      {isAway && (
        <button
          className="to-end"
          onClick={() => {
            isFollowing.current = true;
            const box = scroller.current;
            if (box !== null) box.scrollTop = box.scrollHeight;
          }}
        >
          <Icon name="down" />
          {t("toEnd")}
        </button>
      )}
    </div>
  );
}
