;;; bench-list.el --- Time the list of a large context  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; How long `contexture-list' takes for a context of a thousand items,
;; from the call of the command until the lines are in the buffer, and
;; how long it takes from the key that removes an item until its line is
;; gone; the replies of the server are part of both.  And for how long
;; Emacs is then busy with the news that follows.
;;
;; Prints rows as from-emacs.el does.  CONTEXTURE_BIN names the server.
;; By itself: emacs -Q --batch -L elisp -L benches/emacs -l bench-list
;; -f bench-list-run, with everything byte-compiled.

;;; Code:

(require 'from-emacs)
(require 'contexture-list)

(defconst bench-list-items 1000
  "How many items the list has.")

(defun bench-list-fill (file)
  "Fill the context \"list\" with items from FILE, which is written."
  (with-temp-file file
    (dotimes (line (* 2 bench-list-items))
      (insert (format "(defun name-%d () %d)\n" line line))))
  (contexture-request 'configure-manager
                      (list :manager "list" :max-items bench-list-items))
  (dotimes (number bench-list-items)
    (contexture-request-async
     'add-context
     (list :manager "list" :brief t :type :code
           :content (format "(defun name-%d () %d)\n(defun name-%d () %d)\n"
                            (* 2 number) (* 2 number)
                            (1+ (* 2 number)) (1+ (* 2 number)))
           :metadata (list :filename file :project (file-name-directory file)
                           :start-line (1+ (* 2 number)) :end-line (* 2 (1+ number))
                           :origin :region :language "emacs-lisp-mode"
                           :mode "emacs-lisp-mode"))))
  (contexture-request 'ping))

(defun bench-list-wait (condition)
  "Let Emacs work until CONDITION, a function, returns non-nil."
  (while (not (funcall condition))
    (accept-process-output nil 0.01)))

(defun bench-list-lines ()
  "How many lines the list's buffer has, the headings included."
  (with-current-buffer contexture-list-buffer
    (count-lines (point-min) (point-max))))

(defun bench-list-show ()
  "How many milliseconds it takes to show the list in a new buffer."
  (when (get-buffer contexture-list-buffer)
    (kill-buffer contexture-list-buffer))
  (garbage-collect)
  (let ((start (float-time)))
    (contexture-list "list")
    (bench-list-wait (lambda () (> (bench-list-lines) bench-list-items)))
    (* 1e3 (- (float-time) start))))

(defun bench-list-settle ()
  "Let everything that is on its way arrive."
  (bench-list-wait (lambda ()
                     (with-current-buffer contexture-list-buffer
                       (not contexture-list--updating))))
  (contexture-request 'ping)
  (while (accept-process-output nil 0.02)))

(defun bench-list-remove ()
  "How many milliseconds it takes to remove an item in the middle.
Return them with the longest time for which Emacs was busy afterwards,
and bring the item back.  Emacs draws the screen after each change."
  (bench-list-settle)
  (garbage-collect)
  (let* ((start (float-time))
         took
         (note (lambda (&rest _) (setq took (* 1e3 (- (float-time) start))))))
    (with-current-buffer contexture-list-buffer
      (goto-char (point-min))
      (forward-line (/ bench-list-items 2))
      (add-hook 'after-change-functions note nil t)
      (contexture-list-remove)
      (bench-list-wait (lambda () took))
      (remove-hook 'after-change-functions note t))
    (let ((busy (bench-list-longest-pause)))
      (contexture-request 'undo '(:manager "list"))
      (bench-list-settle)
      (cons took busy))))

(defun bench-list-longest-pause ()
  "The most milliseconds between two ticks until the list has settled."
  (let* ((last (float-time))
         (longest 0)
         (tick (lambda ()
                 (setq longest (max longest (- (float-time) last))
                       last (float-time))))
         (timer (run-at-time 0 0.001 tick)))
    (bench-list-wait (lambda ()
                       (with-current-buffer contexture-list-buffer
                         (not contexture-list--updating))))
    (funcall tick)
    (cancel-timer timer)
    (* 1e3 longest)))

(defun bench-list-median (numbers)
  "The median of NUMBERS."
  (bench-quantile (sort (copy-sequence numbers) #'<) 0.5))

(defun bench-list ()
  "Print the rows for the server in use."
  (let ((file (make-temp-file "contexture-bench-")))
    (unwind-protect
        (progn (bench-list-fill file)
               (bench-list-measure))
      (delete-file file))))

(defun bench-list-measure ()
  "Print the rows for the context \"list\"."
  (bench-list-show)
  (bench-list-settle)
  (bench-row-limit "list of 1,000 items, shown"
                   (bench-list-median (cl-loop repeat 11 collect (bench-list-show)))
                   100)
  (let ((removals (cl-loop repeat 11 collect (bench-list-remove))))
    (bench-row-limit "its line gone after a removal"
                     (bench-list-median (mapcar #'car removals)) 30)
    (bench-row-limit "longest block of Emacs afterwards"
                     (bench-list-median (mapcar #'cdr removals)) 50)))

(defun bench-list-run ()
  "Start a server that keeps nothing, and print the rows."
  (let* ((inhibit-message t)
         (contexture--connection
          (bench-connection (getenv "CONTEXTURE_BIN") "--ephemeral")))
    (bench-list)
    (contexture-disconnect)))

(provide 'bench-list)
;;; bench-list.el ends here
