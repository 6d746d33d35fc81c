// Steps between the versions of a message, or between the results of a thread.
import type { Choice } from "./branches";
import { t } from "./i18n";
import { Icon } from "./icon";

interface Props {
  place: Choice;
  label?: string;
  onShow: (version: string) => void;
}

export function Versions({ place, label = t("versions"), onShow }: Props) {
  const step = (by: number) => {
    const version = place.versions[place.current + by];
    if (version !== undefined) onShow(version);
  };
  return (
    <span className="row versions" role="group" aria-label={label}>
      <button type="button" className="icon quiet" aria-label={t("previous")} disabled={place.current === 0} onClick={() => step(-1)}>
        <Icon name="left" size={14} />
      </button>
      <span>{place.current + 1}/{place.versions.length}</span>
      <button
        type="button"
        className="icon quiet"
        aria-label={t("next")}
        disabled={place.current === place.versions.length - 1}
        onClick={() => step(1)}
      >
        <Icon name="right" size={14} />
      </button>
    </span>
  );
}
