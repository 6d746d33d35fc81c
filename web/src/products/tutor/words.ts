import { wordsOf } from "../../i18n";

const en = {
  correction: "Correction", noMistakes: "No mistakes found.", checkedBy: "Checked by", unchecked: "Not checked.",
  byModel: "the model", byRules: "rules", byHarper: "the grammar checker Harper",
  timeout: "The model took too long, so there may be more mistakes.",
  unreachable: "The model did not answer, so there may be more mistakes.",
  refused: "The model refused to check this, so there may be more mistakes.",
  length: "The model's check was cut, so there may be more mistakes.",
  invalid: "A part of the model's check was unusable, so there may be more mistakes.",
  busy: "There was no time to check the whole message, so there may be more mistakes.",
  limited: "The check is incomplete, so there may be more mistakes.",
  returning: "Opening your conversation", again: "Try again", newConversation: "New conversation",
  tools: "Your English", summary: "Summary", practice: "Practice", profile: "Profile", loading: "Loading",
  // Summary
  inThis: "In this conversation", mistakes: "mistakes", mistake: "mistake", advice: "Advice", nothingYet: "Nothing to correct so far.",
  // Practice
  right: "Right.", almost: "Almost: the mistake is gone, but the rest of the sentence has changed.",
  wrong: "Not yet.", yours: "Your answer", check: "Check", dontKnow: "I don't know", next: "Next exercise",
  correct: "Correct this sentence", solution: "Solution", comesAgain: "It comes again", dueNow: "exercises are due",
  dueOne: "exercise is due", noneDue: "No exercise is due. New ones come from your mistakes.", early: "This answer came before its time and is not counted.",
  // Profile
  level: "Level", nativeLanguage: "Native language", unknown: "not set", save: "Save", saved: "Saved.",
  kept: "The tutor keeps this about you, across conversations.", eraseAll: "Erase everything",
  reallyErase: "Erase your level, language, mistakes and exercises? Your conversations stay. It cannot be undone.",
  erase: "Erase", cancel: "Cancel", erased: "Everything about you is erased.", times: "times", once: "once",
  yourMistakes: "Your mistakes", noMistakesKept: "No mistakes are kept.", show: "Show", hide: "Hide",
  noProfile: "This server keeps no profiles.", languageHint: "Letters and spaces only, such as “Brazilian Portuguese”.",
  agreement: "Agreement", article: "Article", capitalization: "Capital letter", grammar: "Grammar",
  preposition: "Preposition", punctuation: "Punctuation", repetition: "Repetition", spelling: "Spelling",
  tense: "Tense", verb_form: "Verb form", word_choice: "Word choice", word_order: "Word order",
};

export type Word = keyof typeof en;

const pt: Record<Word, string> = {
  correction: "Correção", noMistakes: "Sem erros.", checkedBy: "Verificado por", unchecked: "Não verificado.",
  byModel: "o modelo", byRules: "regras", byHarper: "o corretor Harper",
  timeout: "O modelo demorou demasiado, por isso pode haver mais erros.",
  unreachable: "O modelo não respondeu, por isso pode haver mais erros.",
  refused: "O modelo recusou verificar isto, por isso pode haver mais erros.",
  length: "A verificação do modelo ficou cortada, por isso pode haver mais erros.",
  invalid: "Uma parte da verificação do modelo não serviu, por isso pode haver mais erros.",
  busy: "Não houve tempo para verificar toda a mensagem, por isso pode haver mais erros.",
  limited: "A verificação está incompleta, por isso pode haver mais erros.",
  returning: "A abrir a sua conversa", again: "Tentar de novo", newConversation: "Nova conversa",
  tools: "O seu inglês", summary: "Resumo", practice: "Praticar", profile: "Perfil", loading: "A carregar",
  inThis: "Nesta conversa", mistakes: "erros", mistake: "erro", advice: "Conselho", nothingYet: "Por agora nada a corrigir.",
  right: "Certo.", almost: "Quase: o erro desapareceu, mas o resto da frase mudou.",
  wrong: "Ainda não.", yours: "A sua resposta", check: "Verificar", dontKnow: "Não sei", next: "Exercício seguinte",
  correct: "Corrija esta frase", solution: "Solução", comesAgain: "Volta", dueNow: "exercícios à espera",
  dueOne: "exercício à espera", noneDue: "Nenhum exercício à espera. Os novos vêm dos seus erros.", early: "Esta resposta veio antes do tempo e não conta.",
  level: "Nível", nativeLanguage: "Língua materna", unknown: "por indicar", save: "Guardar", saved: "Guardado.",
  kept: "O tutor guarda isto sobre si, em todas as conversas.", eraseAll: "Apagar tudo",
  reallyErase: "Apagar o seu nível, língua, erros e exercícios? As conversas ficam. Não é possível desfazer.",
  erase: "Apagar", cancel: "Cancelar", erased: "Tudo sobre si foi apagado.", times: "vezes", once: "uma vez",
  yourMistakes: "Os seus erros", noMistakesKept: "Não há erros guardados.", show: "Mostrar", hide: "Esconder",
  noProfile: "Este servidor não guarda perfis.", languageHint: "Só letras e espaços, como “português europeu”.",
  agreement: "Concordância", article: "Artigo", capitalization: "Maiúscula", grammar: "Gramática",
  preposition: "Preposição", punctuation: "Pontuação", repetition: "Repetição", spelling: "Ortografia",
  tense: "Tempo verbal", verb_form: "Forma do verbo", word_choice: "Escolha da palavra", word_order: "Ordem das palavras",
};

export const words = { en, pt };
export const w = wordsOf(en, pt);

/** Name a type of mistake. */
export function typeName(type: string): string {
  return type in en ? w(type as Word) : type;
}
