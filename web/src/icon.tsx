// Icons of the page: lines on a grid of 24, in the colour of the text.

const paths = {
  logo: "M12 3v18M5 7c4 0 4 4 7 4s3-4 7-4M5 17c4 0 4-4 7-4s3 4 7 4",
  plus: "M12 5v14M5 12h14",
  inbox: "M4 13l2.5-8h11L20 13v6H4zM4 13h5l1.5 3h3L15 13h5",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5L20 20",
  dots: "M5 12h.01M12 12h.01M19 12h.01",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M8 8h8v8H8z",
  attach: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.7l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4L14.5 7",
  left: "M14 6l-6 6 6 6",
  right: "M10 6l6 6-6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  chat: "M4 5h16v11H10l-5 4v-4H4z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  people: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-4 2.5-6 6-6s6 2 6 6M16 4.5a3.5 3.5 0 0 1 0 6M17.5 14.3c2.2.7 3.5 2.7 3.5 5.7",
  book: "M5 4h9a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3zM5 17a3 3 0 0 1 3-3h9",
  graph: "M6 18a2 2 0 1 0 0-.01M18 18a2 2 0 1 0 0-.01M12 6a2 2 0 1 0 0-.01M11 8l-4 8M13 8l4 8M8 18h8",
  pulse: "M3 12h4l3-7 4 14 3-7h4",
} as const;

export type IconName = keyof typeof paths;

/** Draw an icon of 18 pixels. It has no meaning of its own: its button needs a label. */
export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      viewBox="0 0 24 24" width={size} height={size} aria-hidden="true" focusable="false" fill="none"
      stroke="currentColor" strokeWidth={name === "dots" ? 2.6 : 1.7} strokeLinecap="round" strokeLinejoin="round"
    >
      <path d={paths[name]} />
    </svg>
  );
}

/** The icons of the products; another graph has `chat`. */
export const productIcon: Record<string, IconName> = {
  chat: "book", tutor: "check", icp_finder: "people", research: "graph", diagnosis: "pulse",
};
