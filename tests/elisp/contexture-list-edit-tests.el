;;; contexture-list-edit-tests.el --- Tests of changes in the list  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Moving items in the list of a context, and editing their text.

;;; Code:

(require 'contexture-list-test-helper)

;;;; Moving

(ert-deftest contexture-list-moves-items-in-the-context ()
  (contexture-list-tests--with-list
    (contexture-list-move-down)
    (should (equal (contexture-list-tests--column 2)
                   '("notes" "a.el" "my-symbol (notes)")))
    (should (equal (aref (tabulated-list-get-entry) 2) "a.el"))
    (contexture-list-move-down)
    (contexture-test-user-error "last item" (contexture-list-move-down))
    (contexture-test-settle)
    (should (equal (contexture-list-tests--order)
                   '("some more words that cost more tokens" "x" "two\nthree")))
    (contexture-list-move-up)
    (contexture-list-move-up)
    (contexture-test-user-error "first item" (contexture-list-move-up))
    (contexture-test-settle)
    (should (equal (contexture-list-tests--column 2)
                   '("a.el" "notes" "my-symbol (notes)")))
    (should (equal (car (contexture-list-tests--order)) "two\nthree"))))

(ert-deftest contexture-list-moves-past-what-is-shown ()
  (contexture-list-tests--with-list
    (contexture-list-filter-name "a\\.el\\|symbol")
    (contexture-list-move-down)
    (should (equal (contexture-list-tests--column 2) '("my-symbol (notes)" "a.el")))
    (contexture-test-settle)
    (should (equal (contexture-list-tests--order)
                   '("some more words that cost more tokens" "x" "two\nthree")))))

(ert-deftest contexture-list-does-not-move-what-is-sorted ()
  (contexture-list-tests--with-list
    (contexture-list-sort "Tokens")
    (contexture-test-user-error "sorted by tokens, so you would not see the move; o shows"
      (contexture-list-move-down))))

(ert-deftest contexture-list-shows-the-servers-order-when-a-move-is-refused ()
  (contexture-list-tests--with-list
    (let ((id (plist-get (car contexture-list--items) :id)))
      (contexture-ert-with-stopped-server
        (contexture-request-async 'remove-items (list :manager "m" :ids (list id)))
        (contexture-test-at-once (contexture-list-move-down)))
      (contexture-list-tests--until-rows 2)
      (should (equal (contexture-list-tests--column 2)
                     '("notes" "my-symbol (notes)"))))))

;;;; Editing

(defmacro contexture-list-tests--editing (&rest body)
  "Run BODY in the buffer that edits the first item of the list."
  (declare (indent 0) (debug t))
  `(contexture-list-tests--with-list
     (contexture-list-edit)
     (with-current-buffer (llm-ert-wait-for
                              (get-buffer "*contexture: edit a.el:2-3*"))
       ,@body)))

(ert-deftest contexture-list-edits-an-item ()
  (contexture-list-tests--editing
    (should (eq major-mode 'emacs-lisp-mode))
    (should (string-match-p "C-c C-c saves the change" header-line-format))
    (goto-char (point-max))
    (insert (propertize "füür\n" 'face 'bold 'read-only t))
    (contexture-test-message "Changed a.el:2-3 ([0-9]+ tokens)"
      (contexture-list-edit-finish))
    (should-not (get-buffer "*contexture: edit a.el:2-3*"))
    (should (equal (car (contexture-list-tests--order)) "two\nthree\nfüür"))
    (let ((item (car (contexture-test-items "m"))))
      (should (equal (contexture-test-metadata item :start-line :origin) '(2 :region)))
      ;; It is not what its file has.
      (should (equal (contexture-list--state item) "copy")))
    (should (string-match-p "(from .*a\\.el:2-3) \\[as of [-0-9: ]+UTC\\]\n"
                            (contexture-request 'context-to-string '(:manager "m"))))))

(ert-deftest contexture-list-edits-are-given-up ()
  (contexture-list-tests--editing
    (contexture-list-edit-finish)
    (should-not (get-buffer "*contexture: edit a.el:2-3*")))
  (contexture-list-tests--editing
    (insert "unwanted")
    (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
      (contexture-list-edit-abort)
      (should (get-buffer "*contexture: edit a.el:2-3*")))
    (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) t)))
      (contexture-list-edit-abort))
    (should-not (get-buffer "*contexture: edit a.el:2-3*"))
    (should (equal (car (contexture-list-tests--order)) "two\nthree"))))

(ert-deftest contexture-list-edits-overwrite-nothing-unseen ()
  (contexture-list-tests--editing
    (insert "mine ")
    (contexture-request 'update-items
                        (list :manager "m" :content "theirs"
                              :id (plist-get contexture-list-item--edited :id)))
    (contexture-test-message "changed elsewhere meanwhile.* again overwrites"
      (contexture-list-edit-finish))
    (should (equal (car (contexture-list-tests--order)) "theirs"))
    (should (equal (with-current-buffer contexture-list--item-buffer (buffer-string))
                   "theirs"))
    (contexture-test-message "Changed a.el" (contexture-list-edit-finish))
    (should (equal (car (contexture-list-tests--order)) "mine two\nthree"))))

(ert-deftest contexture-list-edits-of-removed-items-are-not-lost ()
  (contexture-list-tests--editing
    (insert "mine ")
    (contexture-request 'clear-context (list :manager "m"))
    (contexture-test-message "was removed meanwhile.*your text is still here"
      (contexture-list-edit-finish))
    (should (equal (buffer-string) "mine two\nthree\n"))
    (contexture-request 'undo (list :manager "m"))
    (contexture-test-message "Changed a.el" (contexture-list-edit-finish))))

(ert-deftest contexture-list-edits-are-never-empty ()
  (contexture-list-tests--editing
    (erase-buffer)
    (contexture-test-user-error "cannot be empty" (contexture-list-edit-finish))))

(ert-deftest contexture-list-edits-an-item-in-one-buffer-only ()
  (contexture-list-tests--editing
    (insert "mine ")
    (with-current-buffer contexture-list-buffer (contexture-list-edit))
    (should (equal (buffer-name (window-buffer)) "*contexture: edit a.el:2-3*"))
    (with-current-buffer contexture-list-buffer
      (contexture-list-tests--go-to 2)
      (contexture-list-edit)
      (contexture-list-edit)            ; before the answer to the first
      (contexture-test-settle))
    (should (= 1 (cl-count-if (lambda (buffer)
                                (string-prefix-p "*contexture: edit notes"
                                                 (buffer-name buffer)))
                              (buffer-list))))
    (contexture-ert-with-stopped-server
      (contexture-test-at-once (contexture-list-edit-finish))
      (contexture-test-user-error "not answered yet" (contexture-list-edit-finish))
      (goto-char (point-max))
      (insert "later"))
    (contexture-test-message "Changed a.el\\|Saved, except what you typed since"
      (accept-process-output nil 0.01))))

(ert-deftest contexture-list-edits-keep-what-is-typed-meanwhile ()
  (contexture-list-tests--editing
    (insert "mine ")
    (let ((item contexture-list-item--edited))
      (contexture-ert-with-stopped-server
        (contexture-list-item--save item)
        (goto-char (point-max))
        (insert "later"))
      (llm-ert-wait-for (null contexture-list-item--saving))
      (contexture-test-settle))
    (should (equal (buffer-string) "mine two\nthree\nlater"))
    (should (buffer-modified-p))
    (should (equal (car (contexture-list-tests--order)) "mine two\nthree"))))

(ert-deftest contexture-list-does-not-edit-live-items ()
  (contexture-test-with-server
    (contexture-request 'add-file (list :manager "m" :live t
                                        :path (contexture-test-file "a.el" "x")))
    (contexture-list-tests--open
     (lambda ()
       (contexture-test-user-error "read from its file" (contexture-list-edit))))))

(provide 'contexture-list-edit-tests)
;;; contexture-list-edit-tests.el ends here
