;;; contexture-defun-prose.el --- Sections, blocks and cells  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What `contexture-defun-at-point' takes for a definition in text that
;; headings divide: a source block, or the section with its heading.  And
;; the cells of code that lines of "# %%" divide.

;;; Code:

(eval-when-compile (require 'subr-x))

(defconst contexture-defun-prose--modes
  '(org-mode markdown-mode markdown-ts-mode gfm-mode)
  "Major modes of text that headings divide.")

(defconst contexture-defun-prose--files
  "\\.\\(?:md\\|markdown\\|mkd\\|Rmd\\|qmd\\|org\\)\\'"
  "Regexp for files of such text, for an Emacs without their modes.")

(defun contexture-defun-prose--here-p ()
  "Return non-nil if this buffer's text is divided by headings."
  (or (apply #'derived-mode-p contexture-defun-prose--modes)
      (and (not (derived-mode-p 'prog-mode))
           (string-match-p contexture-defun-prose--files (or buffer-file-name "")))))

(defun contexture-defun-prose--org-p ()
  "Return non-nil if this buffer's text is Org's."
  (or (derived-mode-p 'org-mode)
      (string-suffix-p ".org" (or buffer-file-name ""))))

(defun contexture-defun-prose--at-point ()
  "Return the block or section around point as (BEG END NAME KIND), or nil."
  (if (contexture-defun-prose--org-p)
      (or (contexture-defun-prose--block "^[ \t]*#\\+begin_\\([a-z]+\\)\\(.*\\)$"
                                   (lambda ()
                                     (concat "^[ \t]*#\\+end_" (match-string 1))))
          (contexture-defun-prose--section "^\\(\\*+\\)[ \t]+\\(.+?\\)[ \t]*$"))
    (or (contexture-defun-prose--block
         "^[ \t]*\\(\\(?:```\\|~~~\\)[`~]*\\)[ \t]*\\(.*\\)$"
         (lambda () (concat "^[ \t]*" (regexp-quote (match-string 1)) "[`~]*[ \t]*$")))
        (contexture-defun-prose--section "^\\(#+\\)[ \t]+\\(.+?\\)[ \t#]*$"))))

(defun contexture-defun-prose--block (opening closing)
  "Return the block around point whose first line matches OPENING, or nil.
CLOSING is called after that matched, and returns the regexp of its end."
  (save-excursion
    (let ((here (line-beginning-position)) (case-fold-search t) found)
      (goto-char (point-min))
      (while (and (not found) (re-search-forward opening nil t)
                  (<= (line-beginning-position) here))
        (let ((start (line-beginning-position))
              (language (string-trim (match-string-no-properties 2))))
          (when (re-search-forward (funcall closing) nil t)
            (forward-line)
            (when (> (point) here)
              (setq found (list (contexture-defun-prose--keywords-above start) (point)
                                (contexture-defun-prose--block-name start language)
                                :block))))))
      found)))

(defun contexture-defun-prose--keywords-above (start)
  "Return where the keywords of Org above the block at START begin."
  (save-excursion
    (goto-char start)
    (when (contexture-defun-prose--org-p)
      (while (and (zerop (forward-line -1))
                  (looking-at-p "[ \t]*#\\+\\(?:name\\|header\\|caption\\|attr_\\w+\\)"))
        (setq start (point))))
    start))

(defun contexture-defun-prose--block-name (start language)
  "Return the name of the block at START, or else its LANGUAGE, or nil."
  (save-excursion
    (goto-char (contexture-defun-prose--keywords-above start))
    (cond ((re-search-forward "#\\+name:[ \t]*\\(.+?\\)[ \t]*$" start t)
           (match-string-no-properties 1))
          ((string-match "[[:alnum:]_+-]+" language) (match-string 0 language)))))

(defun contexture-defun-prose--section (heading)
  "Return the section around point, whose first line matches HEADING, or nil.
The match has two groups: one as long as the heading is deep, and its text."
  (save-excursion
    (end-of-line)
    (let (case-fold-search)
      (when (contexture-defun-prose--heading heading #'re-search-backward)
        (let ((start (point))
              (depth (length (match-string 1)))
              (name (match-string-no-properties 2)))
          (end-of-line)
          (while (and (contexture-defun-prose--heading heading #'re-search-forward)
                      (> (length (match-string 1)) depth)))
          (unless (eobp) (forward-line 0))
          (list start (point) name :section))))))

(defun contexture-defun-prose--heading (heading search)
  "Go to the next match of HEADING that is in no block; SEARCH finds it.
Return nil, at the end of the text, if there is none."
  (let (found)
    (while (and (not found) (funcall search heading nil 'move))
      (setq found (save-match-data
                    (save-excursion
                      (forward-line 0)
                      (not (contexture-defun-prose--fenced-p))))))
    found))

(defun contexture-defun-prose--fenced-p ()
  "Return non-nil if this line, which looks like a heading, is in a block."
  (unless (contexture-defun-prose--org-p)     ; in Org an asterisk always begins a heading
    (let ((here (point)) (inside nil))
      (goto-char (point-min))
      (while (re-search-forward "^[ \t]*\\(?:```\\|~~~\\)" here t)
        (setq inside (not inside)))
      inside)))

(defun contexture-defun-prose--cell ()
  "Return the cell around point, between lines of \"# %%\", or nil."
  (let ((mark "^[ \t]*\\(?:#\\|//\\|--\\|;;\\|%\\)[ \t]*%%[ \t]*\\(.*\\)$"))
    (save-excursion
      (end-of-line)
      (when (re-search-backward mark nil t)
        (let ((start (point)) (name (string-trim (match-string-no-properties 1))))
          (end-of-line)
          (if (re-search-forward mark nil t) (forward-line 0) (goto-char (point-max)))
          (list start (point) (and (not (string-empty-p name)) name) :block))))))

(provide 'contexture-defun-prose)
;;; contexture-defun-prose.el ends here
