;;; contexture-regexps-tests.el --- How long it takes to look through texts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A regexp in which one text matches in many ways takes time that grows
;; with the square or the cube of a line.  A model, or a file, can have such a
;; line.  So each regexp in the sources is tried on lines of one character.
;;
;; What takes time that grows with the square of a text is as bad for long
;; texts.  So functions that get whole texts from outside are tried on such.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-conversation)
(require 'contexture-dashboard)
(require 'contexture-doctor)
(require 'contexture-gptel)
(require 'contexture-hub)
(require 'contexture-lisp)
(require 'contexture-map)
(require 'contexture-point)
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

;;;; Long texts

(defun contexture-regexps-tests--texts ()
  "Return long texts that are odd, each of 200,000 characters."
  (mapcar (lambda (part) (apply #'concat "λ" (append (make-list (/ 200000 (length part)) part)
                                                     (list "x"))))
          '(" " "\n" "\t\n" "é\n" "  é\n" " é" "~" "`" "- " "1: ")))

(defconst contexture-regexps-tests--functions
  `((contexture--trim-right . contexture--trim-right)
    (contexture--trim . contexture--trim)
    (squares-of-lines . ,(lambda (text) (contexture--trim text "\n")))
    (contexture--visible . ,(lambda (text) (contexture--visible text t)))
    (contexture--plain-text . contexture--plain-text)
    (contexture-conversations--message-text
     . ,(lambda (text)
          (contexture-conversations--message-text
           (list :content text :role :user :id "msg-1" :timestamp 1 :tokens 1))))
    (contexture-markdown--insert
     . ,(lambda (text)
          (with-temp-buffer
            (contexture-markdown--insert-broken (contexture-markdown--begin nil) text))))
    (contexture-markdown--block-text
     . ,(lambda (text)
          (with-temp-buffer
            (insert (propertize text 'contexture-block
                                (contexture-conversation--make-block :mark "~~~" :indent 1)))
            (contexture-markdown--block-text (point-min)))))
    (contexture-conversation--pretty . contexture-conversation--pretty)
    (contexture-conversation--one-line . contexture-conversation--one-line)
    (contexture-conversation--details . contexture-conversation--details)
    (contexture-conversation--without-code . contexture-conversation--without-code)
    (contexture-remark--read . contexture-remark--read))
  "Functions that get whole texts from outside, by name.")

(ert-deftest contexture-regexps-long-texts-take-no-square-of-their-length ()
  (let ((texts (contexture-regexps-tests--texts)))
    (pcase-dolist (`(,name . ,function) contexture-regexps-tests--functions)
      (dolist (text texts)
        (let ((begun (float-time)))
          (funcall function text)
          (should-not (and (> (- (float-time) begun) (* 1.5 (llm-ert--patience)))
                           (list name (substring text 0 10)))))))))

(ert-deftest contexture-regexps-long-names-are-cut ()
  (let ((contexture--labels (make-hash-table :test #'equal))
        (long (apply #'concat (make-list 5000 "\u05d0\u05d1\u05d2 "))))
    (puthash "manager" long contexture--labels)
    (dolist (name (list long "manager" (concat long "/")))
      (should (< 50 (string-width (contexture--label name)) 150)))
    (should (equal (contexture--label "a\u202eb") "a\\u{202e}b"))))

(ert-deftest contexture-regexps-long-lists-are-shown ()
  (let ((data (list :checkpoints (make-list 20000 '(:message "a\rb" :turn 1)))))
    (should (equal (car (plist-get (contexture--visible-data data) :checkpoints))
                   '(:message "a\\rb" :turn 1)))
    (should (= 20000 (length (plist-get (contexture--visible-data data) :checkpoints)))))
  (should (equal (contexture--visible-data '("a\r" . "b\r")) '("a\\r" . "b\\r"))))

(ert-deftest contexture-regexps-edited-texts-are-as-they-should-be ()
  (should (equal (contexture--trim "\n x y \t") "x y"))
  (should (equal (contexture--trim "**x*y*" "*") "x*y"))
  (should (equal (contexture--trim " \n") ""))
  (should (equal (contexture--trim-right " x\n\n" "\n") " x"))
  (should (string-suffix-p
           "\n  a\n\n   b\n\n"
           (contexture-conversations--message-text
            '(:content "a\n\n b\n" :role :user :id "msg-1" :timestamp 1 :tokens 1))))
  (with-temp-buffer
    (insert (propertize "  a\n\tb\n\n   c" 'contexture-block
                        (contexture-conversation--make-block :mark "~~~" :indent 2)))
    (should (equal (contexture-markdown--block-text (point-min)) "a\nb\n\n c"))))

(ert-deftest contexture-regexps-no-source-trims-by-a-regexp ()
  (dolist (file (directory-files (file-name-directory (locate-library "contexture")) t
                                 "\\`contexture.*\\.el\\'"))
    (with-temp-buffer
      (insert-file-contents file)
      (should-not (and (re-search-forward "[(']string-trim\\(?:-right\\)?[ \n)]" nil t)
                       (list file (line-number-at-pos)))))))

(provide 'contexture-regexps-tests)
;;; contexture-regexps-tests.el ends here
