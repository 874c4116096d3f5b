// What a search finds first: the pages for the first questions, guides, then mathematics and the reference, then pages
// of the project. The weights are Sphinx's own.
var Scorer = {
  score: ([page, , , , score]) =>
    (score * (/^(install|choosing|not-learning)$/.test(page) ? 1.5 : 1)) /
    (/^(project\/|README$)/.test(page) ? 10 : /^(reproduction|reference|math|api)\b/.test(page) ? 1.5 : 1),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
