;;; contexture-list-tests.el --- Tests of the list of a context  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the list shows, what its keys do, and how it follows changes.

;;; Code:

(require 'contexture-test-helper)

(defun contexture-list-tests--add (content &rest metadata)
  "Add CONTENT with METADATA to the context \"m\"."
  (contexture-request 'add-context (list :manager "m" :content content
                                         :type :code :metadata metadata)))

(defmacro contexture-list-tests--with-list (&rest body)
  "Run BODY in a list of three items, with a server."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (let ((file (contexture-test-file "a.el" "one" "two" "three" "four")))
       (make-directory ".git")
       (contexture-list-tests--add "two\nthree\n" :filename file :start-line 2
                                   :end-line 3 :origin :region
                                   :project contexture-test-directory)
       (contexture-list-tests--add "some more words that cost more tokens"
                                   :buffer "notes" :start-line 10 :end-line 10)
       (contexture-list-tests--add "x" :buffer "notes" :symbol "my-symbol"))
     (contexture-list-tests--open
      (lambda () ,@body))))

(defun contexture-list-tests--open (function)
  "Open the list of the context \"m\" and call FUNCTION in it."
  (save-window-excursion
    (contexture-list "m")
    (with-current-buffer contexture-list-buffer
      (contexture-test-until contexture-list--items)
      (contexture-list-tests--go-to 1)
      (funcall function))))

(defun contexture-list-tests--go-to (number)
  "Go to the row of the item with NUMBER, counted from 1 in this test's context."
  (goto-char (contexture-list--find
              (plist-get (nth (1- number) contexture-list--items) :id))))

(defun contexture-list-tests--column (column)
  "Return what COLUMN shows, from top to bottom."
  (save-excursion
    (goto-char (point-min))
    (cl-loop while (not (eobp))
             when (tabulated-list-get-entry)
             collect (substring-no-properties (aref it column))
             do (forward-line))))

(defun contexture-list-tests--until-rows (number)
  "Wait until the list has NUMBER rows."
  (contexture-test-until (= (length (contexture-list-tests--column 0)) number)))

(ert-deftest contexture-list-shows-type-source-lines-and-state ()
  (contexture-list-tests--with-list
    (should (equal (contexture-list-tests--column 1) '("code region" "code" "code")))
    (should (equal (contexture-list-tests--column 2)
                   '("a.el" "notes" "my-symbol (notes)")))
    (should (equal (contexture-list-tests--column 3) '("2-3" "10" "")))
    (should (equal (contexture-list-tests--column 5) '("now" "now" "now")))
    (should (equal (contexture-list-tests--column 6) '("fresh" "fresh" "fresh")))))

(ert-deftest contexture-list-header-shows-the-size ()
  (contexture-list-tests--with-list
    (should (string-match-p "M: 3 items of at most 50, [0-9]+ tokens"
                            header-line-format))))

(ert-deftest contexture-list-shows-ages ()
  (should (equal (mapcar #'contexture-list--age '(-5 0 59 60 3599 3600 86399 86400 9999999))
                 '("now" "now" "now" "1m" "59m" "1h" "23h" "1d" "115d"))))

(ert-deftest contexture-list-sorts-numbers-as-numbers ()
  (contexture-list-tests--with-list
    (pcase-dolist (`(,column ,index) '(("Lines" 3) ("Tokens" 4) ("Age" 5)))
      (setq tabulated-list-sort-key (cons column nil))
      (tabulated-list-init-header)
      (tabulated-list-print)
      (let ((shown (mapcar #'string-to-number (contexture-list-tests--column index))))
        (should (equal shown (sort (copy-sequence shown) #'<)))))))

(ert-deftest contexture-list-sort-asks-for-a-column-outside-of-one ()
  (contexture-list-tests--with-list
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt names &rest _)
                 (should (equal names '("Type" "Source" "Lines" "Tokens" "Age" "State")))
                 "Tokens")))
      (beginning-of-line)
      (call-interactively #'contexture-list-sort))
    (should (equal tabulated-list-sort-key '("Tokens")))))

(ert-deftest contexture-list-visits-the-line ()
  (contexture-list-tests--with-list
    (contexture-list-visit)
    (with-current-buffer (window-buffer)
      (should (equal (buffer-name) "a.el"))
      (should (= (line-number-at-pos) 2)))))

(ert-deftest contexture-list-visits-hidden-lines ()
  (contexture-list-tests--with-list
    (with-current-buffer (find-file-noselect "a.el")
      (narrow-to-region (point-max) (point-max)))
    (contexture-list-visit)
    (with-current-buffer (window-buffer)
      (should (= (line-number-at-pos) 2)))))

(ert-deftest contexture-list-shows-the-text-of-what-is-gone ()
  (contexture-list-tests--with-list
    (delete-file "a.el")
    (contexture-test-message "a.el is gone" (contexture-list-visit))
    (with-current-buffer contexture-list--item-buffer
      (should (equal (buffer-string) "two\nthree\n")))))

(ert-deftest contexture-list-shows-an-items-text ()
  (contexture-list-tests--with-list
    (contexture-list-tests--go-to 2)
    (contexture-list-show)
    (with-current-buffer contexture-list--item-buffer
      (should (equal (buffer-string) "some more words that cost more tokens"))
      (should buffer-read-only))))

(ert-deftest contexture-list-copies-an-items-text ()
  (contexture-list-tests--with-list
    (contexture-list-copy)
    (should (equal (car kill-ring) "two\nthree\n"))))

(ert-deftest contexture-list-removes-what-is-flagged ()
  (contexture-list-tests--with-list
    (contexture-list-flag)
    (contexture-list-flag)
    (contexture-list-flag)
    (contexture-list-tests--go-to 2)
    (contexture-list-unflag)
    (contexture-test-message "Removed 2 items; U undoes it"
      (contexture-list-execute))
    (contexture-list-tests--until-rows 1)
    (should (equal (contexture-list-tests--column 2) '("notes")))
    (should-not contexture-list--flagged)))

(ert-deftest contexture-list-flags-survive-an-update ()
  (contexture-list-tests--with-list
    (contexture-list-flag)
    (contexture-list-tests--add "new")
    (contexture-list-tests--until-rows 4)
    (should (= (length contexture-list--flagged) 1))
    (contexture-list-tests--go-to 1)
    (should (looking-at "D"))))

(ert-deftest contexture-list-execute-wants-flags ()
  (contexture-list-tests--with-list
    (contexture-test-user-error "No item is flagged" (contexture-list-execute))))

(ert-deftest contexture-list-removes-and-undoes ()
  (contexture-list-tests--with-list
    (contexture-list-tests--go-to 2)
    (contexture-list-remove)
    (contexture-list-tests--until-rows 2)
    (contexture-undo)
    (contexture-list-tests--until-rows 3)
    (should (equal (contexture-list-tests--column 2)
                   '("a.el" "notes" "my-symbol (notes)")))))

(ert-deftest contexture-list-removes-the-region ()
  (contexture-list-tests--with-list
    (let ((transient-mark-mode t))
      (goto-char (point-max))
      (push-mark (contexture-list--find (plist-get (nth 1 contexture-list--items) :id))
                 t t)
      (contexture-list-remove))
    (contexture-list-tests--until-rows 1)))

(ert-deftest contexture-list-pins-and-unpins ()
  (contexture-list-tests--with-list
    (contexture-list-pin)
    (contexture-test-until (equal (contexture-list-tests--column 0) '("*" "" "")))
    (contexture-list-tests--go-to 1)
    (contexture-list-pin)
    (contexture-test-until (equal (contexture-list-tests--column 0) '("" "" "")))))

(ert-deftest contexture-list-commands-want-an-item ()
  (contexture-list-tests--with-list
    (goto-char (point-max))
    (dolist (command '(contexture-list-visit contexture-list-show contexture-list-pin
                       contexture-list-flag contexture-list-remove
                       contexture-list-copy))
      (contexture-test-user-error "no item here" (call-interactively command)))))

(ert-deftest contexture-list-follows-what-another-emacs-does ()
  (contexture-test-with-state
    (let (other)
      (contexture-list-tests--add "mine")
      (contexture-list-tests--open
       (lambda ()
         (contexture-list-tests--until-rows 1)
         (contexture-test-as-other-emacs other
           (contexture-list-tests--add "theirs"))
         (contexture-list-tests--until-rows 2)))
      (contexture-test-as-other-emacs other (contexture-disconnect)))))

(ert-deftest contexture-list-follows-a-new-server ()
  (contexture-test-with-state
    (contexture-list-tests--add "kept")
    (contexture-list-tests--open
     (lambda ()
       (contexture-test-kill-server)
       (contexture-test-until (not (contexture-running-p)))
       (contexture-test-until (contexture-running-p))
       (contexture-list-tests--add "new")
       (contexture-list-tests--until-rows 2)))))

(ert-deftest contexture-list-keeps-point-on-its-item ()
  (contexture-list-tests--with-list
    (contexture-list-tests--go-to 3)
    (let ((id (tabulated-list-get-id))
          (window (split-window)))
      (set-window-buffer window (current-buffer))
      (set-window-point window (contexture-list--find
                                (plist-get (nth 1 contexture-list--items) :id)))
      (contexture-request 'remove-context
                          (list :manager "m" :ids
                                (list (plist-get (car contexture-list--items) :id))))
      (contexture-list-tests--until-rows 2)
      (should (equal (tabulated-list-get-id) id))
      (should (equal (tabulated-list-get-id (window-point window))
                     (plist-get (car contexture-list--items) :id))))))

(ert-deftest contexture-list-moves-to-a-neighbour-of-a-removed-item ()
  (contexture-list-tests--with-list
    (contexture-list-tests--go-to 3)
    (contexture-list-remove)
    (contexture-list-tests--until-rows 2)
    (should (equal (tabulated-list-get-id)
                   (plist-get (nth 1 contexture-list--items) :id)))))

(ert-deftest contexture-list-shows-stale-and-missing-items ()
  (contexture-list-tests--with-list
    (write-region "something\nelse\n" nil "a.el" nil 'silent)
    (contexture-list-refresh)
    (contexture-test-until
     (equal (car (contexture-list-tests--column 6)) "stale"))
    (should (eq (get-text-property 0 'face (aref (tabulated-list-get-entry) 2))
                'contexture-list-stale))
    (delete-file "a.el")
    (contexture-list-refresh)
    (contexture-test-until
     (equal (car (contexture-list-tests--column 6)) "missing"))))

(ert-deftest contexture-list-shows-unsaved-and-remote-items ()
  (contexture-test-with-server
    (contexture-list-tests--add "x" :filename (contexture-test-file "a.el" "y")
                                :modified t)
    (contexture-list-tests--add "x" :filename "/ssh:example.org:/a.el")
    (contexture-list-tests--open
     (lambda ()
       (should (equal (contexture-list-tests--column 6) '("unsaved" "remote")))))))

(ert-deftest contexture-list-takes-saved-text-for-saved ()
  (contexture-test-with-server
    (let ((file (contexture-test-file "a.el" "x")))
      (contexture-list-tests--add "x" :filename file :modified t)
      (set-file-times file (time-add nil 60))
      (contexture-list-tests--open
       (lambda ()
         (should (equal (contexture-list-tests--column 6) '("fresh"))))))))

(ert-deftest contexture-preview-follows-the-context ()
  (contexture-test-with-server
    (contexture-list-tests--add "one")
    (contexture-preview "m")
    (unwind-protect
        (progn
          (contexture-request 'add-context '(:manager "m" :content "two"))
          (contexture-test-until
           (with-current-buffer contexture-preview-buffer
             (string-search "two" (buffer-string)))))
      (kill-buffer contexture-preview-buffer))
    (should-not contexture-notification-functions)))

(ert-deftest contexture-symbol-names-are-found-behind-imenus-labels ()
  (should (equal (contexture-symbol--label-name "helper (def)" nil) "helper"))
  (should (equal (contexture-symbol--label-name "Big (class)..." nil) "Big"))
  (should (equal (contexture-symbol--label-name "*class definition*" "Big") "Big"))
  (should (equal (contexture-symbol--label-name "plain-name" nil) "plain-name")))

(ert-deftest contexture-list-fits-a-terminal ()
  (dolist (width '(80 110 200))
    (should (< (cl-loop for column across (contexture-list--format width)
                        sum (1+ (cadr column)))
               (- width 2)))))

(ert-deftest contexture-list-refresh-finds-text-that-moved ()
  (contexture-list-tests--with-list
    (write-region "new first line\none\ntwo\nthree\nfour\n" nil "a.el" nil 'silent)
    (contexture-list-refresh)
    (contexture-test-until
     (equal (contexture-list-tests--column 3) '("3-4" "10" "")))))

(ert-deftest contexture-list-leaves-nothing-behind ()
  (contexture-list-tests--with-list
    (should contexture-notification-functions)
    (kill-buffer contexture-list-buffer)
    (should-not contexture-notification-functions)
    (should-not contexture-connected-hook)))

(ert-deftest contexture-list-opens-for-the-buffer-it-is-called-in ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "b.el" "(one)")
      (contexture-add-buffer)
      (call-interactively #'contexture-list)
      (with-current-buffer contexture-list-buffer
        (contexture-list-tests--until-rows 1)
        (should (equal contexture-manager "b.el")))
      (with-temp-buffer
        (call-interactively #'contexture-list))
      (with-current-buffer contexture-list-buffer
        (should (equal contexture-manager "b.el"))))))

(ert-deftest contexture-list-shows-a-thousand-items ()
  (contexture-test-with-server
    (contexture-request 'configure-manager '(:manager "m" :max-items 1000))
    (dotimes (n 1000)
      (contexture-request-async 'add-context
                                (list :manager "m" :content (number-to-string n)
                                      :brief t)))
    (contexture-request 'ping)
    (contexture-list-tests--open
     (lambda ()
       (contexture-list-tests--until-rows 1000)
       (contexture-list-tests--go-to 500)
       (contexture-list-remove)
       (contexture-list-tests--until-rows 999)))))

(provide 'contexture-list-tests)
;;; contexture-list-tests.el ends here
