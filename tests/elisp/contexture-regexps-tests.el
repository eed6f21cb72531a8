;;; contexture-regexps-tests.el --- How long the search for a regexp takes  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A regexp in which one text matches in many ways takes time that grows
;; with the square or the cube of a line.  A model, or a file, can have such a
;; line.  So each regexp in the sources is tried on lines of one character.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-dashboard)
(require 'contexture-doctor)
(require 'contexture-gptel)
(require 'contexture-hub)
(require 'contexture-lisp)
(require 'contexture-map)
(require 'contexture-sessions)
(require 'contexture-tools)

(defconst contexture-regexps-tests--short
  (list contexture-defun--keyword-head contexture-defun--value-head contexture-defun--call-head)
  "Regexps that are tried only on a narrowed beginning of a line.")

(defun contexture-regexps-tests--like-p (text)
  "Return non-nil if TEXT may be a regexp that repeats something."
  (and (< 2 (length text) 1500)
       (string-match-p "[]).a-z\\][*+]" text)
       (not (string-match-p "[a-z]\\{3,\\} [a-z]+ [a-z]+ [a-z]+" text))
       (ignore-errors (string-match-p text "") t)))

(defun contexture-regexps-tests--in (data)
  "Return the regexps in DATA, which were read from a file."
  (let (found)
    (while (consp data)
      (setq found (append (contexture-regexps-tests--in (pop data)) found)))
    (if (and (stringp data) (contexture-regexps-tests--like-p data)) (cons data found)
      found)))

(defun contexture-regexps-tests--all ()
  "Return all regexps of the package: in its sources, and in its variables."
  (let (found)
    (dolist (file (directory-files (file-name-directory (locate-library "contexture")) t
                                   "\\`contexture.*\\.el\\'"))
      (with-temp-buffer
        (insert-file-contents file)
        (goto-char (point-min))
        (ignore-error end-of-file
          (while t
            (setq found (append (contexture-regexps-tests--in (read (current-buffer))) found))))))
    (mapatoms (lambda (symbol)
                (when (and (string-prefix-p "contexture-" (symbol-name symbol)) (boundp symbol)
                           (stringp (symbol-value symbol)))
                  (setq found (append (contexture-regexps-tests--in
                                       (list (symbol-value symbol)))
                                      found)))))
    (cl-set-difference (delete-dups found) contexture-regexps-tests--short :test #'equal)))

(defun contexture-regexps-tests--seconds (regexp text)
  "Return how long it takes to seek REGEXP in TEXT."
  (let ((begun (float-time)))
    (ignore-errors (string-match-p regexp text))
    (- (float-time) begun)))

(defun contexture-regexps-tests--slow (regexp limit)
  "Return a text in which REGEXP is sought for more than LIMIT seconds, or nil."
  (cl-loop for char in (delete-dups (append regexp " a1!" nil)) ; what classes have, too
           thereis
           (cl-loop for end in '("`" "x" "!|\n")
                    for text = (concat (make-string 300 char) end)
                    when (and (> (contexture-regexps-tests--seconds regexp text) limit)
                              (> (contexture-regexps-tests--seconds regexp text) limit))
                    return text)))

(ert-deftest contexture-regexps-take-no-cube-of-a-line ()
  (let ((regexps (contexture-regexps-tests--all)))
    (should (> (length regexps) 150))
    (dolist (regexp regexps)
      (should-not (contexture-regexps-tests--slow regexp (* 0.05 (llm-ert--patience))))))
  ;; It would be found.
  (should (contexture-regexps-tests--slow "~~~+[ \t]*[^ \t`\n]*[^`\n]*$" 0.05)))

(provide 'contexture-regexps-tests)
;;; contexture-regexps-tests.el ends here
