;;; in-emacs.el --- Time what happens within Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The part of `make bench' for what a user feels while typing: how long
;; loading the package takes, how soon something is offered after `@' in
;; a project of 10,000 files, and what a key costs in a buffer with 200
;; marks.  The rows are those of from-emacs.el.  No server takes part.
;; The package is to be compiled, and on `load-path'.

;;; Code:

(require 'cl-lib)
(require 'from-emacs)
(require 'contexture)
(require 'contexture-mention)
(require 'contexture-marks)

;;; Loading

(defun bench-load-times (count)
  "The milliseconds that loading takes in COUNT new Emacs, sorted."
  (let ((form '(let ((start (current-time)))
                 (require 'contexture)
                 (princ (* 1e3 (float-time (time-subtract nil start))))))
        (directory (file-name-directory (locate-library "contexture"))))
    (sort (cl-loop repeat count collect
                   (with-temp-buffer
                     (call-process (expand-file-name invocation-name invocation-directory)
                                   nil t nil "-Q" "--batch" "-L" directory
                                   "--eval" (prin1-to-string form))
                     (string-to-number (buffer-string))))
          #'<)))

(defun bench-load ()
  "Print how long loading takes."
  (bench-row-limit "loading the package, median of 15"
                   (bench-quantile (bench-load-times 15) 0.5) 12))

;;; Completion after @

(defun bench-offered (input)
  "Offer something for INPUT after an `@' in this buffer, as a popup does.
Return how many candidates are shown."
  (erase-buffer)
  (insert "@" input)
  (pcase-let* ((`(,_ ,_ ,table . ,_) (contexture-mention-at-point))
               (metadata (completion-metadata input table nil))
               (all (completion-all-completions input table nil (length input)
                                                metadata)))
    (setcdr (last all) nil)
    (length (funcall (completion-metadata-get metadata 'display-sort-function) all))))

(defun bench-offered-times (input count)
  "The milliseconds in which something is offered for INPUT, COUNT times, sorted."
  (sort (cl-loop repeat count
                 do (garbage-collect)
                 collect (/ (bench-microseconds #'bench-offered input) 1e3))
        #'<))

(defun bench-cold-times (count)
  "Like `bench-offered-times', nothing being known of the project, COUNT times."
  (sort (cl-loop repeat count
                 do (contexture-files--forget)
                 (setq contexture-mention--quoted nil)
                 append (bench-offered-times "" 1))
        #'<))

(defun bench-mention (directory)
  "Print how soon files are offered in DIRECTORY, which gets 10,000 of them."
  (bench-make-tree directory 10000)
  (let ((default-directory (file-name-as-directory directory)))
    (call-process "git" nil nil nil "init" "-q")
    (call-process "git" nil nil nil "add" ".")
    (with-temp-buffer
      (text-mode)
      (contexture-mention-mode)
      (bench-offered "")                ; loads what it needs
      (bench-row-limit "first candidates after @, 10,000 files, list not there yet"
                       (bench-quantile (bench-cold-times 11) 0.5) 50)
      (let ((list (contexture-files--of (contexture-mention--root) nil)))
        (while (not (contexture-files--list-done list))
          (accept-process-output nil 0.01)))
      (dolist (input '("f" "file-77"))
        (bench-row-limit (format "candidates after @%s, list there" input)
                         (bench-quantile (bench-offered-times input 21) 0.5) 50))
      (contexture-mention-mode -1))))

;;; Marks

(defun bench-key-times (count)
  "The microseconds of COUNT keys at the borders of lines, sorted."
  (sort (cl-loop for number below count
                 do (goto-char (point-min))
                 (forward-line (% (* 7 number) 1000))
                 collect (bench-microseconds
                          (lambda ()
                            (run-hooks 'pre-command-hook)
                            (insert "x")
                            (delete-char -1)
                            (run-hooks 'post-command-hook))))
        #'<))

(defun bench-marks ()
  "Print what a key costs in a buffer with 200 marks."
  (with-temp-buffer
    (dotimes (line 1000) (insert (format "line %d\n" line)))
    (let ((bare (bench-quantile (bench-key-times 1000) 0.5))
          (items (cl-loop for number below 200 collect
                          (list :id (format "ctx-%d" number) :tokens 5 :state :fresh
                                :metadata (list :buffer (buffer-name)
                                                :start-line (+ 1 (* 5 number))
                                                :end-line (+ 3 (* 5 number)))))))
      (contexture-mode)
      (contexture-marks--show (contexture-adding-context) items)
      (unless (= (length (contexture-marks--overlays)) 200)
        (error "There are %d marks" (length (contexture-marks--overlays))))
      (let ((cost (- (bench-quantile (bench-key-times 1000) 0.99) bare)))
        (bench-row "200 marks, what they add to a key and its deletion, 99th percentile"
                   (format "%.0f us" cost) "1000 us" (format "%.2f" (/ cost 1000))
                   "<= 1" (bench-verdict (<= cost 1000))))
      (contexture-mode -1))))

;;; All of it

(defun bench-in-emacs ()
  "Run all and print the rows.  CONTEXTURE_STATE names where files may go."
  (bench-load)
  (bench-mention (concat (getenv "CONTEXTURE_STATE") "-project"))
  (bench-marks))

(provide 'in-emacs)
;;; in-emacs.el ends here
